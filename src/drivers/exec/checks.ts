import { CheckFailure, gone, same, Untried } from '../kit/checks/bench.ts';
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

export function protocolChecks({ channel, logged, now }: ProtocolContext): readonly DriverCheck[] {
  return [
    {
      id: 'too-late',
      title: 'does not start a create after its deadline',
      why: 'A request can wait in a pipe while Berth abandons it, crashes and restarts. If the driver starts it then, it creates a machine that Berth does not expect.',
      remedy:
        'Compare expires_at with the clock before you begin a step, and fail with transient and side_effect none.',
      async run(bench) {
        if (channel().isSerial)
          throw new Untried(
            'Berth sends a request only after the last one is answered: none waits in a pipe',
          );
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
      },
    },
    {
      id: 'destroy-silences',
      title: 'leaves nothing listening at the endpoint of a destroyed machine',
      why: 'A machine that keeps running but is missing from get and list is never found, and its tenant still uses it.',
      remedy:
        'End all processes of the machine and its forwards before you answer destroy with done: sessions that are open, too.',
      async run(bench) {
        const { guest } = bench.context;
        const made = await bench.create(bench.ref('a'));
        const { sshKeys } = bench.spec(made.ref);
        if (guest === undefined || made.endpoint === undefined) throw new Untried('it has no endpoint');
        await bench.eventually('the keys', () => guest.findRefusedKey(made, sshKeys));
        await bench.destroy(made.ref);
        const refused = await guest.findRefusedKey(made, sshKeys);
        if (refused?.startsWith('connect:')) return undefined;
        const { publicIp, sshPort } = made.endpoint;
        throw new CheckFailure(
          `destroy is done, and ${publicIp}:${sshPort} still answers: ${refused ?? 'it accepts the keys'}`,
        );
      },
    },
    {
      id: 'machines-survive',
      title: 'keeps its machines running across a restart of the driver',
      why: 'A driver ends with each restart of Berth, and its process group ends with it: a machine in that group is lost.',
      remedy:
        'Start long-lived processes in a session of their own (setsid, start_new_session, detached), or let a service run the machines.',
      async run(bench) {
        const { reopen } = bench.context;
        if (reopen === undefined) throw new Untried('Berth does not start a driver over HTTP');
        const made = await bench.create(bench.ref('a'));
        await reopen();
        same('get in the next process', await bench.driver.get(made.ref), {
          answer: 'observed',
          value: made,
        });
      },
    },
    {
      id: 'output',
      title: 'writes only answers to standard output, one for each request',
      why: 'Berth logs and drops any other line; after a hundred of them it restarts the driver, and the outcome of open requests is unknown.',
      remedy:
        'Write logs to standard error, also those of the programs and libraries that you call; answer each request once, with its id.',
      async run({ context: { reopen } }) {
        if (reopen === undefined) throw new Untried('a driver over HTTP has no standard output');
        const [first, ...more] = logged().filter(isComplaint);
        if (first === undefined) return undefined;
        throw new CheckFailure(more.length === 0 ? first : `${first}; and ${more.length} more lines`);
      },
    },
    {
      id: 'ends',
      title: 'ends when its standard input is closed',
      why: 'After kill -9 of Berth this is the only signal that the driver gets. A driver that ignores it runs beside its successor.',
      remedy: 'End the program at the end of standard input, also while a request is in progress.',
      async run({ context: { reopen } }) {
        if (reopen === undefined) throw new Untried('Berth does not start a driver over HTTP');
        await reopen();
        if (logged().includes(STDIN_IGNORED)) throw new CheckFailure(STDIN_IGNORED);
      },
    },
  ];
}
