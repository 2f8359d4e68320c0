import signal

from cobre_comm.processes.endings import Ending
from cobre_comm.processes.escalation import CULPRIT_S, LAST_WORDS_S, TERMINATE_S, Escalation
from cobre_comm.processes.loop import NEVER
from cobre_comm.reports.report_pipe import Report


def lost(rank, *ranks):
    return Ending(rank, 1, 10.0, Report("", "", "", 1, ranks))


def test_a_failure_gives_time_for_last_words_then_ends_the_others():
    escalation = Escalation(grace_s=5.0)
    assert escalation.next_at == NEVER
    failed = Ending(1, 3, 10.0)
    escalation.ranks_ended([Ending(2, 0, 9.0)], {0, 1}, 9.0)
    assert escalation.next_at == NEVER
    escalation.ranks_ended([failed], {0, 2}, 10.0)
    escalation.ranks_ended([failed, lost(2, 1)], {0}, 10.1)  # a second failure changes nothing
    term_at = 10.0 + LAST_WORDS_S
    assert escalation.due(term_at - 0.01) == []
    assert escalation.due(term_at) == [signal.SIGTERM]
    assert escalation.due(term_at + TERMINATE_S) == [signal.SIGKILL]
    assert escalation.next_at == NEVER
    assert (escalation.cause, escalation.ended_by_us) == (0, term_at)


def test_a_rank_that_others_have_lost_gets_time_to_end():
    escalation = Escalation()
    escalation.ranks_ended([lost(0, 1)], {1, 2}, 10.0)
    assert escalation.next_at == 10.0 + CULPRIT_S
    escalation.ranks_ended([lost(0, 1), lost(2, 1)], {1}, 11.0)
    assert escalation.next_at == 10.0 + CULPRIT_S
    escalation.ranks_ended([lost(0, 1), lost(2, 1), Ending(1, 3, 12.0)], set(), 12.0)
    assert escalation.next_at == 12.0 + LAST_WORDS_S


def test_a_loss_before_ranks_have_met_ends_them_unless_they_meet_meanwhile():
    escalation = Escalation(survive=True)
    killed = Ending(1, -9, 10.0)
    escalation.ranks_ended([killed], {0, 2}, 10.0)
    assert escalation.began == NEVER
    escalation.ranks_ended([killed], {0, 2}, 10.0, have_met=False)
    assert escalation.next_at == 10.0 + LAST_WORDS_S
    escalation.ranks_ended([killed], {0, 2}, 10.1, have_met=True)
    assert (escalation.next_at, escalation.began) == (NEVER, NEVER)
    escalation.ranks_ended([killed], {0, 2}, 10.2, have_met=False)
    assert escalation.due(11.0) == [signal.SIGTERM]
    escalation.ranks_ended([killed], {0, 2}, 11.1, have_met=True)
    assert escalation.next_at != NEVER


def test_nobody_waits_for_a_rank_that_has_ended_or_is_elsewhere():
    for endings in ([lost(0, 1), Ending(1, 0, 9.0)], [lost(0, 7)], [lost(0, 0, 2)]):
        escalation = Escalation()
        escalation.ranks_ended(endings, {2}, 10.0)
        assert escalation.next_at == 10.0 + LAST_WORDS_S


def test_a_signal_gives_the_grace_and_a_second_one_none():
    escalation = Escalation(grace_s=5.0)
    escalation.signalled(signal.SIGINT, 10.0)
    escalation.ranks_ended([Ending(0, -2, 10.1)], {1}, 10.1)  # the ranks got the signal as well
    assert escalation.due(14.9) == []
    assert escalation.due(15.1) == [signal.SIGTERM]
    escalation.signalled(signal.SIGTERM, 15.2)
    assert escalation.due(15.2) == [signal.SIGKILL]
    assert escalation.cause == signal.SIGINT
