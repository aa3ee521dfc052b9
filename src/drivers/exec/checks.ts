import { CheckFailure, gone, same } from '../kit/checks/bench.ts';
import type { DriverCheck } from '../kit/checks/check.ts';
import type { Channel } from './channel.ts';
import { isComplaint, STDIN_IGNORED } from './run.ts';
import { toPlatform } from './translate.ts';

/** What protocol checks need besides the driver. */
export interface ProtocolContext {
  /** The channel of the driver under test. */
  channel: () => Channel;
  /** The messages logged so far. */
  logged: () => readonly string[];
  now: () => number;
}

/** Checks of the protocol itself. */
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
        gone('get after that', await bench.driver.get(ref));
        return undefined;
      },
    },
    {
      id: 'destroy-silences',
      title: 'leaves nothing that answers at the endpoint of a machine that is destroyed',
      why: 'A machine that runs on, and that get and list do not show any more, is found by nobody; its tenant still uses it.',
      async run(bench) {
        const { guest } = bench.context;
        const made = await bench.create(bench.ref('a'));
        const { sshKeys } = bench.spec(made.ref);
        if (guest === undefined || made.endpoint === undefined) return { untried: 'it has no endpoint' };
        await bench.eventually('the keys', () => guest.findRefusedKey(made, sshKeys));
        await bench.destroy(made.ref);
        const refused = await guest.findRefusedKey(made, sshKeys);
        if (refused?.startsWith('connect:')) return undefined;
        const { publicIp, sshPort } = made.endpoint;
        throw new CheckFailure(
          `destroy is done, and ${publicIp}:${sshPort} still answers: ${refused ?? 'it lets the keys in'}`,
        );
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
      id: 'output',
      title: 'writes nothing to standard output but its answers, one to each request',
      why: 'Berth logs such a line and drops it; after a hundred of them it starts the driver again, and what was under way is unknown.',
      async run({ context: { reopen } }) {
        if (reopen === undefined) return { untried: 'a driver over HTTP has no standard output' };
        const [first, ...more] = logged().filter(isComplaint);
        if (first === undefined) return undefined;
        throw new CheckFailure(more.length === 0 ? first : `${first}; and ${more.length} lines more`);
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
