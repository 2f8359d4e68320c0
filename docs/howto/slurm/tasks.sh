#!/bin/bash
#SBATCH --nodes=4
#SBATCH --ntasks-per-node=32
#SBATCH --cpus-per-task=1
#SBATCH --signal=USR1@120

source "$HOME/training/bin/activate"  # the environment of the program; conda: conda activate training
export NUMBA_NUM_THREADS=$SLURM_CPUS_PER_TASK OMP_NUM_THREADS=$SLURM_CPUS_PER_TASK
export COBRE_COMM_GRACEFUL=SIGUSR1
export COBRE_TCP_TOKEN=$(openssl rand -hex 32)
srun python train.py
