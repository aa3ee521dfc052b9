import { CheckFailure, same } from '../kit/checks/bench.ts';
import type { DriverCheck } from '../kit/checks/check.ts';
import type { Channel } from './channel.ts';
import { STDIN_IGNORED } from './run.ts';
import { toPlatform } from './translate.ts';

/** What checks of the protocol itself are given beside the driver. */
export interface ProtocolContext {
  /** Of the driver that is under test now. */
  channel: () => Channel;
  /** The sentences that were logged so far. */
  logged: () => readonly string[];
  now: () => number;
}

/** What only a driver that is a program of its own can get wrong. */
export function protocolChecks({ channel, logged, now }: ProtocolContext): readonly DriverCheck[] {
  return [
    {
      id: 'too-late',
      title: 'does not begin a create whose time is over',
      why: 'A request may wait in a pipe while Berth gives it up, dies and starts again. Begun after that, it makes a machine that nobody waits for.',
      async run(bench) {
        if (channel().isSerial)
          return { untried: 'Berth sends it a request when the last one is answered: none waits in a pipe' };
        const ref = bench.ref('late');
        const spec = toPlatform(bench.spec(ref), undefined, 'ubuntu');
        const result = await channel().ask('create', { ref, cookie: null, spec, expires_at: now() - 1_000 });
        const { outcome, code, side_effect } = (result ?? {}) as Record<string, unknown>;
        same(
          'create',
          { outcome, code, side_effect },
          { outcome: 'failed', code: 'transient', side_effect: 'none' },
        );
        same('get after that', await bench.driver.get(ref), { answer: 'gone' });
        return undefined;
      },
    },
    {
      id: 'machines-survive',
      title: 'leaves its machines running when it ends and is started again',
      why: 'A driver ends with each restart of Berth. What is in its process group ends with it: a machine that is, is lost.',
      async run(bench) {
        const { reopen } = bench.context;
        if (reopen === undefined) return { untried: 'a driver over HTTP is not started by Berth' };
        const made = await bench.create(bench.ref('a'));
        await reopen();
        same('get in the next process', await bench.driver.get(made.ref), {
          answer: 'observed',
          value: made,
        });
        return undefined;
      },
    },
    {
      id: 'ends',
      title: 'ends when its standard input is closed',
      why: 'After kill -9 of Berth that is all that tells the driver: otherwise two of them run side by side.',
      async run({ context: { reopen } }) {
        if (reopen === undefined) return { untried: 'a driver over HTTP is not started by Berth' };
        await reopen();
        if (logged().includes(STDIN_IGNORED)) throw new CheckFailure(STDIN_IGNORED);
        return undefined;
      },
    },
  ];
}
