import { z } from 'zod';
import { canHappen, happen, type MachineEvent } from '../../../platform-model/events.ts';
import { type MachineFault, NEVER_MS } from '../fault.ts';

const none = z.object({});

function eventFault(event: MachineEvent, does: string, strikes: string): MachineFault {
  const params = z.object({
    notice_ms: z.number().min(0).default(0),
    gone_after_ms: z.number().min(0).default(2_000),
  });
  return {
    layer: 'machine',
    on: [],
    does,
    strikes,
    params: event === 'reclaim' ? params : none,
    fits: (machine) =>
      canHappen(event, machine) &&
      // The reclaim was announced already.
      (event !== 'reclaim' || machine.reclaimAt === null || machine.reclaimTakesMs === undefined),
    // A machine whose instance is not ONLINE yet would be restarted.
    status: event === 'reap' ? 'STOPPED' : 'ONLINE',
    happen: ({ clock, params }, at) =>
      happen(event, {
        ...at,
        now: clock.now(),
        noticeMs: Number(params['notice_ms'] ?? 0),
        goneAfterMs: Number(params['gone_after_ms'] ?? 0),
      }),
  };
}

export const machineFaults = {
  'spot-reclaim': eventFault(
    'reclaim',
    'The platform reclaims a running machine. The strike is the notice: the machine runs for `notice_ms` more. A SPOT instance is destroyed, any other reads ERROR.',
    'O: a reclaimed instance: ONLINE → DESTROYING → DESTROYED.',
  ),
  'stopped-reaped': eventFault(
    'reap',
    'The platform removes a stopped machine.',
    'O: an instance that is gone is 404, and its volumes stay.',
  ),
  'guest-power-off': eventFault(
    'powerOff',
    'The guest switches itself off.',
    'O: a guest that powers itself off: ONLINE → STOPPED.',
  ),
  'machine-paused': eventFault(
    'suspend',
    'The platform pauses a running machine: its disk has no space left.',
    'Design: an alarm, and after a minute ONLINE → STOPPED with its disk; a start resumes it.',
  ),
  'machine-breaks': eventFault('breakDown', 'A running machine fails.', 'O: ONLINE → ERROR, with an error.'),
  'machine-lost': eventFault(
    'loss',
    'A running machine disappears.',
    'Design: a loss is confirmed, with an alarm; the instance reads ERROR, or is destroyed if SPOT.',
  ),
  'boot-fails': {
    layer: 'machine',
    on: [],
    params: none,
    does: 'The boot of a machine fails.',
    strikes: 'O: PROVISIONING → ERROR, with an error; nothing is charged.',
    fits: ({ power, bootFails }) => power === 'building' && !bootFails,
    happen: (_strike, { machines, machine }) => machines.change(machine, { bootFails: true }),
  },
  'boot-never-finishes': {
    layer: 'machine',
    on: [],
    params: none,
    does: 'The boot of a machine never ends.',
    strikes: 'O: provisioning reaches ONLINE within 10 minutes, or ends in ERROR.',
    fits: ({ power, until, createdAt }) => power === 'building' && (until ?? 0) < createdAt + NEVER_MS,
    happen: ({ clock }, { machines, machine }) => machines.change(machine, { until: clock.now() + NEVER_MS }),
  },
} as const satisfies Record<string, MachineFault>;
