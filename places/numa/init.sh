#!/bin/busybox sh
# Process 1 of the virtual machine. The kernel writes to the first serial line, the command to the
# second serial line. FOLDER, the scratch folder, is a variable from the kernel's command line.
set -e
/bin/busybox --install -s /bin
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs dev /dev
for module in /modules/*.ko; do insmod "$module"; done

# Mount the files of the machine outside, read only, and over them a layer for what is written.
shared=trans=virtio,version=9p2000.L,msize=512000
mkdir -p /read /written /new
mount -t 9p -o "$shared,ro,cache=loose" read /read
mount -t tmpfs -o mode=755 tmpfs /written
mkdir /written/up /written/work
mount -t overlay -o lowerdir=/read,upperdir=/written/up,workdir=/written/work files /new

for name in proc sys dev; do mount --move "/$name" "/new/$name"; done
mkdir -p /new/dev/shm /new/dev/pts "/new$FOLDER"
mount -t tmpfs tmpfs /new/dev/shm
mount -t tmpfs tmpfs /new/run
mount -t devpts devpts /new/dev/pts
mount -t 9p -o "$shared" folder "/new$FOLDER"
ip link set lo up
hostname numa

stty -F /new/dev/ttyS1 raw
code=0
chroot /new /bin/sh "$FOLDER/command" </new/dev/null >/new/dev/ttyS1 2>&1 || code=$?
echo "$code" >"/new$FOLDER/code"
sync
poweroff -f
