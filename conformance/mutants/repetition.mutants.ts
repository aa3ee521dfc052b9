import { onAnswers, onRule, refusal } from './deviate.ts';
import type { Mutant } from './mutant.ts';
import { ApiError } from './reference/errors.ts';
import type { ReferenceRequest, WireAnswer } from './reference/exchange.ts';
import type { Instance } from './reference/model.ts';
import type { Rules } from './reference/rules.ts';

const LIST = 'GET /instances';
const AVAILABILITY = 'GET /availability';
const READ = 'GET /instances/{instanceId}';

type Operation = Parameters<Rules['takesEffect']>[1];

/** Replaces rules for an instance from its second stop or start on. */
function fromSecond(
  what: Operation,
  change: (rules: Rules, isSecond: (instance: Instance) => boolean, hit: () => void) => Partial<Rules>,
): Mutant['behave'] {
  return (rules, hit) => {
    const counts = new Map<string, number>();
    const isSecond = ({ id }: Instance): boolean => (counts.get(id) ?? 0) >= 2;
    return {
      ...rules,
      ...change(rules, isSecond, hit),
      takesEffect(instance, operation) {
        if (operation === what) counts.set(instance.id, (counts.get(instance.id) ?? 0) + 1);
        return rules.takesEffect(instance, operation);
      },
    };
  };
}

/** Changes every third of the calls for which `isCounted` holds. */
function everyThird(
  isCounted: (request: ReferenceRequest, answer: WireAnswer) => boolean,
  change: (answer: WireAnswer) => WireAnswer,
): Mutant['behave'] {
  return (rules, hit) => {
    let calls = 0;
    return {
      ...rules,
      answer(request, answer) {
        const usual = rules.answer(request, answer);
        if (!isCounted(request, usual) || ++calls % 3 !== 0) return usual;
        hit();
        return change(usual);
      },
    };
  };
}

interface List {
  instances: Readonly<Record<string, unknown>>[];
}

const listOf = ({ json }: WireAnswer): List['instances'] => (json as List).instances;
const withList = (answer: WireAnswer, instances: List['instances']): WireAnswer => ({
  ...answer,
  json: { instances },
});

/** Answers from a copy of each answer, which is made anew in every period of `lifetimeMs`. */
export function cached(route: string, lifetimeMs: number, firstAtMs: number): Mutant['behave'] {
  return (rules, hit, clock) => {
    const copies = new Map<string, { period: number; answer: WireAnswer }>();
    return {
      ...rules,
      answer(request, answer) {
        const usual = rules.answer(request, answer);
        if (request.route !== route || usual.status >= 500 || usual.status === 401) return usual;
        const period = Math.floor((clock.now() - firstAtMs) / lifetimeMs);
        const key = `${request.path}?${request.query} ${request.headers['authorization']}`;
        const copy = copies.get(key);
        if (copy?.period !== period) {
          copies.set(key, { period, answer: structuredClone(usual) });
          return usual;
        }
        if (JSON.stringify(copy.answer.json) !== JSON.stringify(usual.json)) hit();
        return copy.answer;
      },
    };
  };
}

const lists: readonly Mutant[] = [
  {
    id: 'the-third-entry-is-missing',
    breaks: 'GET /instances lists every instance.',
    reddens: ['INS-LIST-005'],
    behave: onAnswers([LIST], (answer) =>
      answer.status === 200 && listOf(answer).length > 2
        ? withList(answer, listOf(answer).toSpliced(2, 1))
        : undefined,
    ),
  },
  {
    id: 'the-list-is-its-first-page',
    breaks: 'GET /instances lists every instance.',
    reddens: ['INS-LIST-005'],
    behave: onAnswers([LIST], (answer) =>
      answer.status === 200 && listOf(answer).length > 2
        ? withList(answer, listOf(answer).slice(0, 2))
        : undefined,
    ),
  },
  {
    id: 'pages-overlap',
    breaks: 'GET /instances lists each instance once.',
    reddens: ['INS-LIST-005'],
    behave: onAnswers([LIST], (answer) => {
      if (answer.status !== 200 || listOf(answer).length < 3) return undefined;
      return withList(answer, [...listOf(answer), ...listOf(answer).slice(-1)]);
    }),
  },
  {
    id: 'each-third-list-lacks-one',
    breaks: 'GET /instances lists every instance.',
    reddens: ['INS-LIST-003', 'INS-LIST-005'],
    behave: everyThird(
      ({ route }, answer) => route === LIST && answer.status === 200 && listOf(answer).length > 0,
      (answer) => withList(answer, listOf(answer).slice(0, -1)),
    ),
  },
];

const caches: readonly Mutant[] = [
  {
    id: 'availability-is-a-minute-old',
    breaks: '/availability reflects real-time inventory.',
    reddens: ['AVL-REALTIME-001'],
    behave: cached(AVAILABILITY, 60_000, 45_000),
  },
  {
    id: 'lists-are-a-minute-old',
    breaks: 'Status values are observable within seconds of a change.',
    reddens: ['INS-404-005', 'INS-LIST-003', 'INS-LIST-004', 'INS-LIST-005'],
    behave: cached(LIST, 60_000, 0),
  },
];

const cycles: readonly Mutant[] = [
  {
    id: 'stops-once-only',
    breaks: 'An ONLINE instance that is stoppable is stopped.',
    reddens: ['CYCLE-AGAIN-001'],
    behave: (rules, hit) => {
      const stopped = new Set<string>();
      return {
        ...rules,
        mayStop(instance) {
          const may = rules.mayStop(instance);
          if (may && stopped.has(instance.id)) hit();
          return may && !stopped.has(instance.id);
        },
        takesEffect(instance, operation) {
          if (operation === 'stop') stopped.add(instance.id);
          return rules.takesEffect(instance, operation);
        },
      };
    },
  },
  {
    id: 'second-start-fails',
    breaks: 'STOPPED, start: ONLINE.',
    reddens: ['CYCLE-AGAIN-001'],
    behave: fromSecond('start', (rules, isSecond, hit) => ({
      statusAfter(instance, next) {
        if (!isSecond(instance) || next !== 'ONLINE') return rules.statusAfter(instance, next);
        hit();
        return 'ERROR';
      },
    })),
  },
  {
    id: 'second-start-has-a-new-disk',
    breaks: 'Disk preserved.',
    reddens: ['CYCLE-AGAIN-001'],
    behave: fromSecond('start', (rules, isSecond, hit) => ({
      diskAfterStart(instance, disk) {
        if (!isSecond(instance)) return rules.diskAfterStart(instance, disk);
        hit();
        return { ...disk, files: new Map() };
      },
    })),
  },
];

const thirds: readonly Mutant[] = [
  {
    id: 'each-third-delete-is-404-and-not-done',
    breaks: '404 says that an instance does not exist.',
    reddens: ['DEL-404-001'],
    takesMs: 700_000,
    behave: (rules, hit) => {
      let calls = 0;
      return {
        ...rules,
        takesEffect(instance, operation) {
          if (operation !== 'delete' || ++calls % 3 !== 0) return rules.takesEffect(instance, operation);
          hit();
          throw new ApiError(404, 'not_found', 'There is no such instance.');
        },
      };
    },
  },
  {
    id: 'each-third-machine-runs-on',
    breaks: 'DESTROYED: the machine does not run any more.',
    reddens: ['SSH-GONE-001'],
    behave: onRule('sshListens', (_usual, { id }, status) =>
      status === 'DESTROYED' && Number(id.slice(2)) % 3 === 0 ? true : undefined,
    ),
  },
  {
    id: 'each-third-machine-has-one-key',
    breaks: 'Every key in ssh_keys is injected.',
    reddens: ['SSH-KEYS-001'],
    behave: (rules, hit) => {
      let machines = 0;
      return {
        ...rules,
        keysToInject(keys) {
          if (++machines % 3 !== 0) return rules.keysToInject(keys);
          hit();
          return keys.slice(0, 1);
        },
      };
    },
  },
  {
    id: 'each-third-read-is-500',
    breaks: 'GET of an instance answers 200.',
    reddens: ['ERR-5XX-001', 'INS-GET-001'],
    behave: everyThird(
      ({ route }, { status }) => route === READ && status === 200,
      () => refusal(500, 'internal'),
    ),
  },
];

const regions: readonly Mutant[] = [
  {
    id: 'a-second-region-sells-nothing',
    breaks: 'What /availability lists can be deployed.',
    reddens: ['REG-BUY-001'],
    behave: onRule('claimCapacity', (usual, _offer, region) =>
      usual && region === 'us-east' ? false : undefined,
    ),
  },
  {
    id: 'a-second-region-fails',
    breaks: 'A create is answered 201.',
    reddens: ['ERR-5XX-001', 'REG-BUY-001'],
    behave: (rules, hit) => ({
      ...rules,
      claimCapacity(offer, region) {
        if (region !== 'us-east' || offer.id === 'metal-epyc') return rules.claimCapacity(offer, region);
        hit();
        throw new ApiError(500, 'internal', 'No network there.');
      },
    }),
  },
  {
    id: 'a-drained-region-is-shown-and-not-listed',
    breaks: 'region filters the offers that are available there.',
    reddens: ['AVL-REGION-004'],
    behave: onRule('regionsShown', (usual, { id }, _regions, list) =>
      id === 'cpu-plain' && list === 'availability' ? [...usual, 'ap-south'] : undefined,
    ),
  },
];

/** What shows only in a second region, at a third entry, in a second cycle, at a third call, or to a read in time. */
export const repetitionMutants: readonly Mutant[] = [...lists, ...caches, ...cycles, ...thirds, ...regions];
