import socket

from localcloud.ports import Reservations, free_port, is_free


def test_the_usual_port_is_chosen_when_it_is_free() -> None:
    port = free_port()
    reservations = Reservations()
    assert reservations.choose(None, port) == port
    reservations.release()


def test_a_port_that_somebody_listens_on_is_passed_over() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        taken = server.getsockname()[1]
        assert not is_free(taken)
        reservations = Reservations()
        assert reservations.choose(taken) != taken
        reservations.release()


def test_two_local_clouds_never_choose_the_same_port_though_nobody_listens_yet() -> None:
    port = free_port()
    mine, theirs = Reservations(), Reservations()
    assert mine.choose(port) == port
    assert theirs.choose(port) != port
    mine.release()
    assert theirs.choose(port) == port
    theirs.release()
