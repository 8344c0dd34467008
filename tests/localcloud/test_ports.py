import socket
from pathlib import Path

from tests.ports import free_pair, free_port

from localcloud.ports import ANY, Reservations, is_free


def test_the_usual_port_is_chosen_when_it_is_free() -> None:
    reservations = Reservations()
    port = reservations.choose()
    reservations.release()
    assert reservations.choose(None, port) == port
    reservations.release()


def test_a_port_that_somebody_listens_on_is_passed_over() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        taken = server.getsockname()[1]
        assert not is_free(taken)
        reservations = Reservations()
        assert reservations.choose(taken) != taken
        assert not reservations.take(taken)
        reservations.release()


def test_two_local_clouds_never_choose_the_same_port_though_nobody_listens_yet() -> None:
    mine, theirs = Reservations(), Reservations()
    port = mine.choose()
    assert theirs.choose(port) != port
    mine.release()
    assert theirs.choose(port) == port
    theirs.release()


def test_a_port_that_is_listened_on_can_be_held_for_after_a_restart() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        again, other = Reservations(), Reservations()
        assert again.hold(port)
    assert is_free(port)
    assert not other.take(port)
    again.release()


def test_any_port_is_below_those_that_the_kernel_gives_to_outgoing_connections() -> None:
    lowest, _ = Path("/proc/sys/net/ipv4/ip_local_port_range").read_text(encoding="utf-8").split()
    assert int(lowest) > ANY[-1]
    assert free_port() in ANY


def test_a_pair_is_two_ports_of_which_neither_is_given_to_anybody_else() -> None:
    port = free_pair()
    other = Reservations()
    assert not other.take(port)
    assert not other.take(port + 1)
