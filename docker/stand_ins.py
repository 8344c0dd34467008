"""The stand-ins for Google Cloud in a container of their own, for the profile `local` of docker-compose.yaml.

They listen on loopback only, as on a laptop. This program passes connections on to them from one more address, the
container's own in the network of docker-compose (or what `--listen` says), and writes that network's addresses into
endpoints.json. It ends when any stand-in ends: the container's restart policy does the rest.
"""

import argparse
import asyncio
import contextlib
import json
import os
import signal
import socket
import sys
from collections.abc import Sequence

from localcloud.catalogue import gcs_command, storage_command
from localcloud.home import Home

CHUNK = 1 << 16


def main(arguments: Sequence[str] | None = None) -> int:
    """Run until TERM (0) or until a stand-in ends (1)."""
    parser = argparse.ArgumentParser(description="Stand-ins for Google Cloud, reachable from other containers.")
    parser.add_argument("--listen", help="address to pass connections on from (default: that of this container)")
    parser.add_argument("--advertise", required=True, help="host name under which others reach that address")
    parser.add_argument("--vertex-port", type=int, default=8801)
    parser.add_argument("--storage-port", type=int, default=8802)
    options = parser.parse_args(arguments)
    return asyncio.run(serve(options, Home.locate()))


async def serve(options: argparse.Namespace, home: Home) -> int:
    """Start the stand-ins and the forwarding, then wait."""
    home.make_folders()
    address = options.listen or socket.gethostbyname(socket.gethostname())
    stopped = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    children = [await asyncio.create_subprocess_exec(*command) for command in commands(options, home)]
    servers = [await forward(address, port) for port in (options.vertex_port, options.storage_port)]
    write_endpoints(options, home)
    waiting = [asyncio.create_task(child.wait()) for child in children]
    done, _ = await asyncio.wait([*waiting, asyncio.create_task(stopped.wait())], return_when=asyncio.FIRST_COMPLETED)
    for server in servers:
        server.close()
    await stop(children)
    if stopped.is_set():
        return 0
    names = [command[:3] for command, task in zip(commands(options, home), waiting, strict=True) if task in done]
    print(f"a stand-in ended by itself: {names}", file=sys.stderr)
    return 1


def commands(options: argparse.Namespace, home: Home) -> list[list[str]]:
    """Give the command lines: the storage server, its proxy, the Vertex stand-in."""
    server_port = options.storage_port + 1
    vertex = [sys.executable, "-m", "localcloud.vertex", "--port", str(options.vertex_port)]
    vertex += ["--state", str(home.state / "vertex"), "--python", str(home.trainer_python)]
    vertex += ["--storage-endpoint", f"http://127.0.0.1:{options.storage_port}"]
    return [
        gcs_command(home.state / "storage", server_port, f"http://{options.advertise}:{options.storage_port}"),
        storage_command(options.storage_port, server_port, home.logs / "storage-journal.jsonl"),
        vertex,
    ]


async def forward(address: str, port: int) -> asyncio.Server:
    """Pass connections to `address` on to the same port of loopback."""

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            inner_reader, inner_writer = await asyncio.open_connection("127.0.0.1", port)
        except OSError:  # not up yet, or restarting: the client tries again, as it would with a closed port
            writer.close()
            return
        await asyncio.gather(pump(reader, inner_writer), pump(inner_reader, writer))

    return await asyncio.start_server(connected, address, port)


async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Copy one direction of a connection until its end, and pass the end on."""
    with contextlib.suppress(ConnectionError):
        while data := await reader.read(CHUNK):
            writer.write(data)
            await writer.drain()
    writer.close()


def write_endpoints(options: argparse.Namespace, home: Home) -> None:
    """Tell the other containers, through the shared folder, where the stand-ins are (docs/contracts.md, section 2)."""
    vertex = f"http://{options.advertise}:{options.vertex_port}"
    storage = f"http://{options.advertise}:{options.storage_port}"
    partial = home.endpoints_file.with_suffix(".partial")
    partial.write_text(json.dumps({"vertex": vertex, "storage": storage, "logging": vertex, "pid": os.getpid()}))
    partial.replace(home.endpoints_file)


async def stop(children: Sequence[asyncio.subprocess.Process]) -> None:
    """End the stand-ins, the last started first, and wait for them."""
    for child in reversed(children):
        if child.returncode is None:
            child.terminate()
            await child.wait()


if __name__ == "__main__":
    sys.exit(main())
