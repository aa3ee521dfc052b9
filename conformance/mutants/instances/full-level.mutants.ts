import { onAnswers, onRule, refusal } from '../deviate.ts';
import type { Mutant } from '../mutant.ts';
import { ApiError } from '../reference/errors.ts';

const CREATE = 'POST /instances';
const DELETE = 'DELETE /instances/{instanceId}';
const LIST = 'GET /instances';
const RACED = 'gpu-l4';
const SECOND_KEY = 'Bearer reference-key-two';

/** Faults that only level full detects: names, first boots, several keys, early deletes, and concurrent creates. */
export const fullMutants: readonly Mutant[] = [
  {
    id: 'a-taken-name-is-409',
    breaks: 'The orchestrator de-duplicates names instead of failing.',
    reddens: ['NAME-DUP-001'],
    behave: (rules, hit) => ({
      ...rules,
      uniqueName(wanted, taken) {
        if (!taken.includes(wanted)) return wanted;
        hit();
        throw new ApiError(409, 'name_taken', 'Another instance has this name.');
      },
    }),
  },
  {
    id: 'files-go-through-a-shell',
    breaks: 'The content of a CloudInitFile is plain text.',
    reddens: ['BOOT-FILES-001'],
    behave: onRule('filesAtFirstBoot', (files) =>
      mapFiles(files, (content) => content.replaceAll('$HOME', '/root')),
    ),
  },
  {
    id: 'permissions-are-decimal',
    breaks: 'permissions are in octal text form.',
    reddens: ['BOOT-FILES-002', 'BOOT-FILES-003'],
    behave: onRule('ownersAtFirstBoot', (owners) =>
      mapFiles(owners, (owner) => owner.replace(/^\d+/, (digits) => (Number(digits) % 512).toString(8))),
    ),
  },
  {
    id: 'commands-are-not-run',
    breaks: 'runcmd: shell commands on first boot.',
    reddens: ['BOOT-CMD-001'],
    behave: onRule('commandsAtFirstBoot', (commands) => (commands.length > 0 ? [] : undefined)),
  },
  {
    id: 'always-the-default-image',
    breaks: 'operating_system_image is what is deployed.',
    reddens: ['BOOT-IMAGE-001'],
    behave: onRule('imageToDeploy', (_usual, offer, wanted) =>
      wanted === undefined ? undefined : offer.images[0],
    ),
  },
  {
    id: 'one-key-at-a-time',
    breaks: 'Several keys may be valid at once.',
    reddens: ['INS-LIST-001', 'KEYS-SECOND-001'],
    alsoIn: ['stop'],
    behave: onRule('isAuthorized', (_usual, { headers }) =>
      headers['authorization'] === SECOND_KEY ? false : undefined,
    ),
  },
  {
    id: 'instances-belong-to-keys',
    breaks: 'Keys are scoped to the marketplace account.',
    reddens: ['INS-LIST-003', 'KEYS-SECOND-002'],
    behave: onAnswers([LIST], (answer, { headers }) =>
      headers['authorization'] === SECOND_KEY ? { ...answer, json: { instances: [] } } : undefined,
    ),
  },
  {
    id: 'any-account-lists-instances',
    breaks: 'Keys are scoped to the marketplace account.',
    reddens: ['KEYS-ACCOUNT-001'],
    behave: onRule('isStranger', (usual, { route }) => (usual && route === LIST ? false : undefined)),
  },
  {
    id: 'early-delete-is-forgotten',
    breaks: 'Any live state can be destroyed.',
    reddens: ['DEL-EARLY-001', 'TRACE-FRESH-001'],
    behave: onRule('takesEffect', (_usual, { status }, operation) =>
      operation === 'delete' && status === 'PROVISIONING' ? false : undefined,
    ),
  },
  {
    id: 'deletes-lock-each-other-out',
    breaks: 'DELETE is idempotent.',
    reddens: ['DEL-TWICE-001'],
    behave: (rules, hit, clock) => {
      const asked = new Map<string, number>();
      return {
        ...rules,
        answer(request, answer) {
          const usual = rules.answer(request, answer);
          if (request.route !== DELETE) return usual;
          const isLocked = asked.get(request.path) === clock.now();
          asked.set(request.path, clock.now());
          if (!isLocked) return usual;
          hit();
          return refusal(409, 'locked');
        },
      };
    },
  },
  {
    id: 'stopped-cannot-be-destroyed',
    breaks: 'Any live state can be destroyed.',
    reddens: ['DEL-STOPPED-001'],
    behave: refusesDelete('STOPPED'),
  },
  {
    id: 'the-loser-is-a-bad-request',
    breaks: 'A create without capacity is 409.',
    reddens: ['RACE-CREATE-001'],
    behave: onAnswers([CREATE], ({ status }, { text }) =>
      status === 409 && text.includes(RACED) ? refusal(400, 'invalid_request') : undefined,
    ),
  },
  {
    id: 'one-port-for-two',
    breaks: 'ONLINE is reachable at its own endpoint.',
    reddens: ['RACE-LIVE-001'],
    behave: onRule('showInstance', (shown, { offer }) =>
      offer.id === RACED && shown['ssh_port'] !== undefined ? { ...shown, ssh_port: 22 } : undefined,
    ),
  },
  {
    id: 'only-one-of-an-offer-boots',
    breaks: 'A create that was answered 201 comes ONLINE.',
    reddens: ['RACE-LIVE-001'],
    behave: (rules, hit) => {
      const live = new Set<string>();
      return {
        ...rules,
        statusAfter({ id, offer, ...rest }, next) {
          const usual = rules.statusAfter({ id, offer, ...rest }, next);
          if (offer.id !== RACED) return usual;
          if (next !== 'ONLINE') live.delete(id);
          else if (live.size > 0 && !live.has(id)) {
            hit();
            return 'ERROR';
          } else live.add(id);
          return usual;
        },
      };
    },
  },
  {
    id: 'sells-one-too-many',
    breaks: '409: the requested capacity is no longer available.',
    reddens: ['RACE-UNITS-001'],
    behave: onRule('claimCapacity', (usual, { id }) => (id === RACED && !usual ? true : undefined)),
  },
  {
    id: 'availability-is-a-cache',
    breaks: '/availability reflects real-time inventory.',
    reddens: ['AVL-REALTIME-001'],
    behave: onRule('isAvailable', (usual, { id }) => (id === RACED && !usual ? true : undefined)),
  },
  {
    id: 'capacity-leaks',
    breaks: '/availability reflects real-time inventory.',
    reddens: ['AVL-REALTIME-002'],
    behave: (rules, hit) => ({ ...rules, releaseCapacity: () => hit() }),
  },
];

export function mapFiles(
  files: ReadonlyMap<string, string>,
  change: (text: string) => string,
): ReadonlyMap<string, string> | undefined {
  return files.size === 0 ? undefined : new Map([...files].map(([path, text]) => [path, change(text)]));
}

function refusesDelete(status: string): Mutant['behave'] {
  return (rules, hit) => ({
    ...rules,
    takesEffect(instance, operation) {
      if (operation !== 'delete' || instance.status !== status) return rules.takesEffect(instance, operation);
      hit();
      throw new ApiError(409, 'invalid_state', `The instance is ${status} and cannot be destroyed.`);
    },
  });
}
