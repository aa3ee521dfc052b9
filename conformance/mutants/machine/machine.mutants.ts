import { onAnswers, onRule, refusal } from '../deviate.ts';
import type { Mutant } from '../mutant.ts';
import type { Instance } from '../reference/model.ts';

const GET = 'GET /instances/{instanceId}';
const START = 'POST /instances/{instanceId}/start';
const STOP = 'POST /instances/{instanceId}/stop';

/** Faults in the machine behind an instance, and in starting, stopping and destroying it. */
export const machineMutants: readonly Mutant[] = [
  {
    id: 'online-without-an-address',
    breaks: 'public_ip is required for an instance to count as ONLINE.',
    reddens: ['INS-ONLINE-001'],
    behave: (rules, hit) => {
      let count = 0;
      return {
        ...rules,
        showInstance(instance, shown, request) {
          // Logins follow reads, not lists.
          const isListed = instance.status === 'ONLINE' && request.route === 'GET /instances';
          if (!isListed || ++count % 7 !== 3) return rules.showInstance(instance, shown, request);
          hit();
          const { public_ip: _, ...rest } = shown;
          return rules.showInstance(instance, rest, request);
        },
      };
    },
  },
  {
    id: 'boots-for-eleven-minutes',
    takesMs: 2_520_000,
    breaks: 'VM provisioning reaches ONLINE within 10 minutes.',
    reddens: ['INS-READY-001', 'INS-READY-002'],
    run: { readyTimeoutMs: 1_200_000 },
    behave: onRule('bootMs', () => 660_000),
  },
  {
    id: 'boots-for-six-minutes',
    takesMs: 1_320_000,
    breaks: 'The typical target is under 5 minutes.',
    reddens: ['INS-READY-002'],
    behave: onRule('bootMs', () => 360_000),
  },
  {
    id: 'machine-ends-a-minute-after-it-came-online',
    isSeenAtPaceOnly: true,
    breaks: 'ONLINE means running and reachable with a live SSH endpoint.',
    reddens: ['SSH-LIVE-001'],
    behave: (rules, hit, clock) => {
      // The others live for a minute in some runs only.
      let first: Instance | undefined;
      return {
        ...rules,
        bootMs(instance) {
          const ms = rules.bootMs(instance);
          first ??= instance;
          if (instance === first)
            clock.after(ms + 60_000, () => {
              hit();
              void clock.during(instance.endpoint.close());
            });
          return ms;
        },
      };
    },
  },
  {
    id: 'first-key-only',
    breaks: 'The orchestrator injects every key in ssh_keys.',
    reddens: ['SSH-KEYS-001', 'SSH-KEYS-004', 'SSH-START-001'],
    behave: onRule('keysToInject', ([first]) => (first === undefined ? undefined : [first])),
  },
  {
    id: 'anybody-logs-in',
    breaks: 'The injected keys, and no others, log in.',
    reddens: ['SSH-KEYS-002', 'SSH-KEYS-003', 'SSH-KEYS-005'],
    behave: onRule('mayLogin', (usual, _instance, { method }) =>
      !usual && method === 'publickey' ? true : undefined,
    ),
  },
  {
    id: 'every-key-on-every-instance',
    breaks: 'The keys in ssh_keys are those of one instance.',
    reddens: ['SSH-KEYS-003', 'SSH-KEYS-005'],
    behave: letsIn(() => true),
  },
  {
    id: 'stopped-still-runs',
    breaks: 'A stop ends what runs.',
    reddens: ['SSH-STOP-001'],
    behave: onRule('sshListens', (usual, _instance, status) =>
      !usual && status.startsWith('STOP') ? true : undefined,
    ),
  },
  {
    id: 'keys-lost-at-the-start',
    breaks: 'After a start the instance is ONLINE again: its keys work.',
    reddens: ['SSH-START-001'],
    behave: (rules, hit) => {
      const restarted = new Set<string>();
      return {
        ...rules,
        diskAfterStart(instance, disk) {
          restarted.add(instance.id);
          return rules.diskAfterStart(instance, disk);
        },
        mayLogin(instance, attempt) {
          const isSecond = attempt.key !== undefined && attempt.key === instance.keys[1];
          if (!restarted.has(instance.id) || !isSecond) return rules.mayLogin(instance, attempt);
          hit();
          return false;
        },
      };
    },
  },
  {
    id: 'destroyed-still-runs',
    breaks: 'A DELETE destroys the machine.',
    reddens: ['SSH-GONE-001'],
    behave: onRule('sshListens', (usual, _instance, status) =>
      !usual && status.startsWith('DESTROY') ? true : undefined,
    ),
  },
  {
    id: 'disk-lost-by-a-stop',
    breaks: 'The disk is preserved over a stop and a start.',
    reddens: ['INS-DISK-001', 'INS-DISK-002'],
    behave: onRule('diskAfterStart', (disk) => ({ ...disk, files: new Map() })),
  },
  {
    id: 'another-address-after-the-start',
    breaks: 'The IP stays the same where the platform allows.',
    reddens: ['INS-IP-001'],
    behave: (rules, hit) => {
      const restarted = new Set<string>();
      return {
        ...rules,
        diskAfterStart(instance, disk) {
          restarted.add(instance.id);
          return rules.diskAfterStart(instance, disk);
        },
        showInstance(instance, shown, request) {
          if (!restarted.has(instance.id) || shown['public_ip'] === undefined)
            return rules.showInstance(instance, shown, request);
          hit();
          return rules.showInstance(instance, { ...shown, public_ip: 'localhost' }, request);
        },
      };
    },
  },
  {
    id: 'stop-answers-202',
    breaks: 'stop answers 200 with the instance.',
    reddens: ['STOP-200-001'],
    behave: onAnswers([STOP], (answer) => (answer.status === 200 ? { ...answer, status: 202 } : undefined)),
  },
  {
    id: 'stopped-is-offline',
    breaks: 'STOPPED: the resource still exists and can be resumed.',
    reddens: ['STOP-END-001'],
    behave: onRule('statusAfter', (_usual, _instance, next) => (next === 'STOPPED' ? 'OFFLINE' : undefined)),
  },
  {
    id: 'stop-while-provisioning',
    breaks: 'stop of an instance that is not stoppable is 409.',
    reddens: ['STOP-409-001'],
    behave: (rules, hit) => ({
      ...rules,
      mayStop: (instance) => instance.status === 'PROVISIONING' || rules.mayStop(instance),
      takesEffect(instance, operation) {
        if (operation !== 'stop' || instance.status !== 'PROVISIONING')
          return rules.takesEffect(instance, operation);
        hit();
        return false;
      },
    }),
  },
  {
    id: 'stop-of-stopped',
    breaks: 'stop of an instance that is not stoppable is 409.',
    reddens: ['STOP-409-002'],
    behave: refusedOtherwise(STOP, 'STOPPED'),
  },
  {
    id: 'stop-of-destroying',
    breaks: 'stop of an instance that is not stoppable is 409.',
    reddens: ['STOP-409-003'],
    behave: refusedOtherwise(STOP, 'DESTROYING'),
  },
  {
    id: 'start-answers-starting',
    breaks: 'start answers 200 with the instance.',
    reddens: ['START-200-001'],
    behave: onAnswers([START], (answer) => (answer.status === 200 ? { ...answer, status: 202 } : undefined)),
  },
  {
    id: 'start-ends-in-error',
    breaks: 'A start leads to ONLINE.',
    reddens: ['START-END-001'],
    behave: (rules, hit) => ({
      ...rules,
      statusAfter(instance, next) {
        if (instance.status !== 'STOPPED' || next !== 'ONLINE') return rules.statusAfter(instance, next);
        hit();
        return 'ERROR';
      },
    }),
  },
  {
    id: 'start-of-online',
    breaks: 'start of an instance that is not startable is 409.',
    reddens: ['START-409-001'],
    behave: refusedOtherwise(START, 'ONLINE'),
  },
  {
    id: 'start-while-provisioning',
    breaks: 'start of an instance that is not startable is 409.',
    reddens: ['START-409-002'],
    behave: refusedOtherwise(START, 'PROVISIONING'),
  },
  {
    id: 'start-while-stopping',
    breaks: 'start of an instance that is not startable is 409.',
    reddens: ['START-409-004'],
    behave: (rules, hit) => ({
      ...rules,
      mayStart: (instance) => instance.status === 'STOPPING' || rules.mayStart(instance),
      takesEffect(instance, operation) {
        if (operation !== 'start' || instance.status !== 'STOPPING')
          return rules.takesEffect(instance, operation);
        hit();
        return false;
      },
    }),
  },
  {
    id: 'second-start-has-a-new-disk',
    breaks: 'Disk preserved.',
    reddens: ['CYCLE-AGAIN-001'],
    behave: (rules, hit) => {
      const started = new Set<string>();
      return {
        ...rules,
        diskAfterStart(instance, disk) {
          const usual = rules.diskAfterStart(instance, disk);
          if (!started.has(instance.id)) {
            started.add(instance.id);
            return usual;
          }
          hit();
          return { ...usual, files: new Map() };
        },
      };
    },
  },
  {
    id: 'refused-start-destroys',
    breaks: 'A platform that cannot resume does not silently destroy state.',
    reddens: ['START-409-003', 'TRACE-CAUSE-001'],
    options: { resume: false },
    behave: (rules, hit, clock) => {
      let lost: Instance | undefined;
      return {
        ...rules,
        answer(request, answer) {
          const gone = lost;
          if (
            gone !== undefined &&
            request.route === 'DELETE /instances/{instanceId}' &&
            request.path.endsWith(gone.id)
          )
            clock.after(8_000, () => {
              gone.status = 'DESTROYED';
              gone.destroyedAtMs ??= clock.now();
            });
          return rules.answer(request, answer);
        },
        mayStart(instance) {
          if (instance.status === 'STOPPED' && instance.id === 'i-00001') {
            hit();
            instance.status = 'DESTROYING';
            instance.updatedAtMs = clock.wall();
            lost = instance;
          }
          return false;
        },
      };
    },
  },
  {
    id: 'refused-start-shows-a-stop',
    breaks: 'A request that is refused changes nothing.',
    reddens: ['REFUSE-001', 'TRACE-CAUSE-001'],
    behave: (rules, hit, clock) => {
      let refused: string | undefined;
      return {
        ...rules,
        mayStart(instance) {
          if (instance.status === 'ONLINE') refused = instance.id;
          return rules.mayStart(instance);
        },
        showInstance(instance, shown, request) {
          const usual = rules.showInstance(instance, shown, request);
          if (instance.id !== refused || request.route !== GET) return usual;
          refused = undefined;
          hit();
          instance.updatedAtMs = clock.wall() + 1;
          return { ...usual, status: 'STOPPED', updated_at: rules.timestamp(clock.wall()) };
        },
      };
    },
  },
];

/** Also lets in the keys of other instances. */
export function letsIn(isChosen: (other: Instance) => boolean): Mutant['behave'] {
  return (rules, hit) => {
    const instances: Instance[] = [];
    return {
      ...rules,
      bootMs(instance) {
        instances.push(instance);
        return rules.bootMs(instance);
      },
      mayLogin(instance, attempt) {
        const keys = instances.filter(isChosen).flatMap((other) => other.keys);
        const usual = rules.mayLogin(instance, attempt);
        if (usual || attempt.key === undefined || !keys.includes(attempt.key)) return usual;
        hit();
        return true;
      },
    };
  };
}

/** Answers 400 instead of 409 to a request that the status does not allow. */
function refusedOtherwise(route: string, status: string): Mutant['behave'] {
  return onAnswers([route], (answer) =>
    answer.status === 409 && statusIn(answer.json) === status ? refusal(400, 'bad_request') : undefined,
  );
}

/** The status in the details of a refusal. */
function statusIn(body: unknown): unknown {
  const { error } = (body ?? {}) as { error?: { details?: { status?: unknown } } };
  return error?.details?.status;
}
