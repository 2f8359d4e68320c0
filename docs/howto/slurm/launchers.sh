#!/bin/bash
#SBATCH --nodes=4
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=32

source "$HOME/training/bin/activate"  # the environment of the program; conda: conda activate training
export COBRE_TCP_TOKEN=$(openssl rand -hex 32)
first=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n1)
export coordinator="$first:$((20000 + SLURM_JOB_ID % 10000))"

srun --ntasks-per-node=1 --cpus-per-task="$SLURM_CPUS_PER_TASK" --kill-on-bad-exit=1 bash -c '
  exec cobre-comm run -n "$SLURM_CPUS_PER_TASK" --nnodes "$SLURM_NNODES" \
    --node-rank "$SLURM_NODEID" --coordinator "$coordinator" train.py'
