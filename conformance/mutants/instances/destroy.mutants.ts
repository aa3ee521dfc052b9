import { onAnswers, refusal } from '../deviate.ts';
import type { Mutant } from '../mutant.ts';
import { ApiError } from '../reference/errors.ts';

const READ = 'GET /instances/{instanceId}';
const DELETE = 'DELETE /instances/{instanceId}';
/** The path of an instance that the run created. */
const OWN = /i-\d{5}/;

/** Faults in destroying an instance. */
export const destroyMutants: readonly Mutant[] = [
  {
    id: 'delete-shows-what-was',
    breaks: 'DELETE answers with the destruction initiated or completed.',
    reddens: ['DEL-200-001'],
    behave: (rules, hit) => {
      const before = new Map<string, string>();
      return {
        ...rules,
        takesEffect(instance, operation) {
          if (operation === 'delete') before.set(instance.id, instance.status);
          return rules.takesEffect(instance, operation);
        },
        showInstance(instance, shown, request) {
          const usual = rules.showInstance(instance, shown, request);
          const status = before.get(instance.id);
          if (request.route !== DELETE || status === undefined) return usual;
          before.delete(instance.id);
          hit();
          return { ...usual, status };
        },
      };
    },
  },
  {
    id: 'gone-reads-410',
    breaks: 'A destroyed instance reads 404.',
    reddens: ['DEL-GONE-001'],
    behave: onAnswers([READ], (answer, { path }) =>
      answer.status === 404 && OWN.test(path) ? refusal(410, 'gone') : undefined,
    ),
  },
  {
    id: 'second-delete-is-409',
    breaks: 'DELETE is idempotent.',
    reddens: ['DEL-AGAIN-001', 'DEL-TWICE-001'],
    behave: (rules, hit) => {
      const asked = new Set<string>();
      return {
        ...rules,
        answer(request, answer) {
          const usual = rules.answer(request, answer);
          if (request.route !== DELETE || usual.status !== 200) return usual;
          if (!asked.has(request.path)) {
            asked.add(request.path);
            return usual;
          }
          hit();
          return refusal(409, 'invalid_state');
        },
      };
    },
  },
  {
    id: 'delete-of-gone-is-409',
    breaks: 'Deleting an already-destroyed instance is a success.',
    reddens: ['DEL-AGAIN-002'],
    behave: onAnswers([DELETE], (answer, { path }) =>
      answer.status === 404 && OWN.test(path) ? refusal(409, 'invalid_state') : undefined,
    ),
  },
  {
    id: 'each-third-delete-is-404-and-not-done',
    breaks: '404 says that an instance does not exist.',
    reddens: ['DEL-404-001'],
    alsoIn: ['race'],
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
    id: 'delete-needs-the-region',
    breaks: 'region is optional.',
    reddens: ['INS-REGION-001'],
    behave: onAnswers([DELETE], (answer, { query }) =>
      answer.status === 200 && !query.has('region') ? refusal(400, 'region_missing') : undefined,
    ),
  },
  {
    id: 'delete-while-provisioning-is-undone',
    breaks: 'A DELETE of any live state leads to DESTROYED.',
    reddens: ['DEL-EARLY-001', 'DEL-STAYS-001', 'INS-404-005', 'INS-ONLINE-001'],
    alsoIn: ['early-delete'],
    isSeenAtPaceOnly: true,
    takesMs: 300_000,
    behave: comesBack('PROVISIONING', 6_000),
  },
];

/** An instance that had the status `from` at its DELETE is ONLINE again, once, so long after it was destroyed. */
function comesBack(from: string, afterMs: number): Mutant['behave'] {
  return (rules, hit, clock) => {
    const chosen = new Set<string>();
    return {
      ...rules,
      takesEffect(instance, operation) {
        const { id, status } = instance;
        if (operation === 'delete' && !chosen.has(id) && status === from) {
          chosen.add(id);
          clock.after(rules.destroyMs(instance) + afterMs, () => {
            hit();
            instance.status = 'ONLINE';
            delete instance.destroyedAtMs;
          });
        }
        return rules.takesEffect(instance, operation);
      },
    };
  };
}
