import { requireOnline, type Scenario } from '../scenario.ts';

/** How many polled reads the latency check needs. */
export const ENOUGH_POLLS = 20;
/** How long a machine is observed while it is ONLINE. Machines have been seen to end after a minute. */
export const OBSERVED_MS = 65_000;

/** Polls the instance until it has been ONLINE for a while, and then logs in once more. */
export const observe: Scenario = {
  id: 'observe',
  level: 'lifecycle',
  title: 'observes the instance while it is ONLINE',
  after: ['online'],
  buys: [],
  async run(session) {
    const found = requireOnline(session, 'observe');
    if (found === undefined) return;
    const { observeMs = OBSERVED_MS } = session.settings;
    let last = 'ONLINE';
    await session.poll(
      'observe/poll',
      found.instance,
      (status) => {
        last = status ?? last;
        const isOver = session.now() - session.onlineSince >= observeMs && session.polls >= ENOUGH_POLLS;
        return isOver || last !== 'ONLINE';
      },
      {
        text: `the instance to have been ONLINE for ${observeMs / 1000} s (--observe-s)`,
        atLeastMs: observeMs + session.settings.pollIntervalMs,
      },
    );
    if (last === 'ONLINE') await session.login('observe/login', found.shown, 'first');
    else session.skip(['observe/login'], `the instance reads ${last}`);
  },
};
