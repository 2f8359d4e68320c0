"""Ranks meet at the port that they were told, with bare sockets: rank 0 counts the others."""

import os
import socket
import time

rank, size = (int(os.environ[f"COBRE_TCP_{name}"]) for name in ("RANK", "SIZE"))
port, token = int(os.environ["COBRE_TCP_PORT"]), os.environ["COBRE_TCP_TOKEN"].encode()
if rank == 0:
    with socket.create_server((os.environ["COBRE_TCP_BIND_ADDR"], port)) as listener:
        for _ in range(size - 1):
            other, _ = listener.accept()
            with other:
                assert other.recv(len(token), socket.MSG_WAITALL) == token
    print(f"{size} ranks met")
else:
    while True:
        try:
            with socket.create_connection((os.environ["COBRE_TCP_COORDINATOR"], port)) as rank_0:
                rank_0.sendall(token)
            break
        except ConnectionRefusedError:
            time.sleep(0.02)
