import { z } from 'zod';
import { canHappen, happen, type MachineEvent } from '../../../platform-model/events.ts';
import type { ProbeResult } from '../../../ports/ssh-probe.ts';
import { delay } from '../connection.ts';
import { type MachineFault, NEVER_MS, type SshFault } from '../fault.ts';

const ofMachine = { layer: 'machine', on: [], params: z.object({}) } as const;

function event(name: MachineEvent, does: string, rule: string): MachineFault<Record<never, never>> {
  return {
    ...ofMachine,
    does,
    rule,
    fits: (machine) => canHappen(name, machine),
    // A machine whose instance is not ONLINE yet would be restarted.
    status: name === 'reap' ? 'STOPPED' : 'ONLINE',
    happen: ({ clock }, at) => happen(name, { ...at, now: clock.now(), noticeMs: 0, goneAfterMs: 0 }),
  };
}

const reclaim = {
  notice_ms: z.number().min(0).default(0),
  gone_after_ms: z.number().min(0).default(2_000),
};

export const machineFaults = {
  'spot-reclaim': {
    ...event(
      'reclaim',
      'The platform reclaims a running machine. It begins with the notice: the machine runs for `notice_ms` more. A SPOT instance is destroyed, any other reads ERROR.',
      'O: a reclaimed instance: ONLINE → DESTROYING → DESTROYED.',
    ),
    params: z.object(reclaim),
    // Unless the reclaim was announced already.
    fits: (machine) =>
      canHappen('reclaim', machine) && (machine.reclaimAt === null || machine.reclaimTakesMs === undefined),
    happen: ({ clock, params: { notice_ms: noticeMs, gone_after_ms: goneAfterMs } }, at) =>
      happen('reclaim', { ...at, now: clock.now(), noticeMs, goneAfterMs }),
  } satisfies MachineFault<typeof reclaim>,
  'stopped-reaped': event(
    'reap',
    'The platform removes a stopped machine.',
    'O: an instance that is gone is 404, and its volumes stay.',
  ),
  'guest-power-off': event(
    'powerOff',
    'The guest switches itself off.',
    'O: a guest that powers itself off: ONLINE → STOPPED.',
  ),
  'machine-paused': event(
    'suspend',
    'The platform pauses a running machine: its disk has no space left.',
    'Design: an alarm, and after a minute ONLINE → STOPPED with its disk; a start resumes it.',
  ),
  'machine-breaks': event('breakDown', 'A running machine fails.', 'O: ONLINE → ERROR, with an error.'),
  'machine-lost': event(
    'loss',
    'A running machine disappears.',
    'Design: a loss is confirmed, with an alarm; the instance reads ERROR, or is destroyed if SPOT.',
  ),
  'boot-fails': {
    ...ofMachine,
    does: 'The boot of a machine fails.',
    rule: 'O: PROVISIONING → ERROR, with an error; nothing is charged.',
    fits: ({ power, bootFails }) => power === 'building' && !bootFails,
    happen: (_trigger, { machines, machine }) => machines.change(machine, { bootFails: true }),
  },
  'boot-never-finishes': {
    ...ofMachine,
    does: 'The boot of a machine never ends.',
    rule: 'O: provisioning reaches ONLINE within 10 minutes, or ends in ERROR.',
    fits: ({ power, until, createdAt }) => power === 'building' && (until ?? 0) < createdAt + NEVER_MS,
    happen: ({ clock }, { machines, machine }) => machines.change(machine, { until: clock.now() + NEVER_MS }),
  },
} as const satisfies Record<string, MachineFault>;

const LIVE = 'O: ONLINE means reachable by SSH.';
const KEYS = 'O: every key of ssh_keys logs in before an instance is ONLINE.';
const PATIENCE_MS = 10_000;

function ssh(does: string, rule: string, probe: SshFault['probe']): SshFault {
  return { layer: 'ssh', on: [], params: z.object({}), times: 'sticky', does, rule, probe };
}

const failed = (step: 'connect' | 'banner' | 'handshake' | 'host_key', detail: string): ProbeResult => ({
  ok: false,
  step,
  detail,
});

/** The result, with the key of this index refused. */
const refused = (result: ProbeResult, keyIndex: number): ProbeResult =>
  result.ok ? { ok: false, step: 'auth', keyIndex, detail: 'the key was refused' } : result;

export const sshFaults = {
  'ssh-refused': ssh('Nothing listens on the SSH port.', LIVE, async () =>
    failed('connect', 'connection refused'),
  ),
  'ssh-silent': ssh(
    'The SSH port takes a connection and says nothing.',
    LIVE,
    async ({ clock, withinMs = PATIENCE_MS }) => {
      await delay(clock, withinMs);
      return failed('banner', `no SSH banner within ${withinMs} ms`);
    },
  ),
  'ssh-no-handshake': ssh('The SSH handshake breaks off.', LIVE, async () =>
    failed('handshake', 'the connection was closed in the handshake'),
  ),
  'ssh-wrong-host-key': ssh(
    'Another machine answers at the address, with a different host key.',
    'Design: the host key is pinned; another machine at the address proves nothing.',
    async ({ pinned }, own) => {
      const other = 'SHA256:anotherMachineAnswersAtThisAddress000000000';
      if (pinned !== undefined) return failed('host_key', `the host key is ${other}`);
      const result = await own();
      return result.ok ? { ok: true, hostKeyFingerprint: other } : result;
    },
  ),
  'ssh-key-refused': ssh('The machine refuses every key.', KEYS, async (_at, own) => refused(await own(), 0)),
  'ssh-last-key-refused': ssh('The machine accepts all keys except the last.', KEYS, async ({ keys }, own) =>
    refused(await own(), keys.length - 1),
  ),
} as const satisfies Record<string, SshFault>;
