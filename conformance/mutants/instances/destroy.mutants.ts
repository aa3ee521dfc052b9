import { onAnswers, onRule, refusal, withFields } from '../deviate.ts';
import type { Mutant } from '../mutant.ts';
import type { WireAnswer } from '../reference/exchange.ts';

const DELETE = 'DELETE /instances/{instanceId}';

/** Faults in destroying an instance. */
export const destroyMutants: readonly Mutant[] = [
  {
    id: 'delete-answers-202',
    breaks: 'DELETE answers 200 with the instance.',
    reddens: ['DEL-200-001'],
    behave: firstDelete((answer) => ({ ...answer, status: 202 })),
  },
  {
    id: 'delete-answers-204-with-a-body',
    breaks: 'DELETE answers 200 with the instance.',
    reddens: ['DEL-200-001', 'WIRE-JSON-001'],
    behave: firstDelete((answer) => ({ ...answer, status: 204 })),
  },
  {
    id: 'delete-shows-what-was',
    breaks: 'DELETE answers with the destruction initiated or completed.',
    reddens: ['DEL-200-001'],
    behave: firstDelete((answer) => withFields(answer, { status: 'STOPPED' })),
  },
  {
    id: 'destroyed-is-an-error',
    breaks: 'A destroyed instance reads 404.',
    reddens: ['DEL-GONE-001', 'TRACE-PATH-001'],
    behave: onRule('statusAfter', (_usual, _instance, next) => (next === 'DESTROYED' ? 'ERROR' : undefined)),
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
      answer.status === 404 && /i-\d{5}/.test(path) ? refusal(409, 'invalid_state') : undefined,
    ),
  },
];

/** Changes the answer to the first DELETE of each instance. */
function firstDelete(change: (answer: WireAnswer) => WireAnswer): Mutant['behave'] {
  const asked = new Set<string>();
  return onAnswers([DELETE], (answer, { path }) => {
    if (answer.status !== 200 || asked.has(path)) return undefined;
    asked.add(path);
    return change(answer);
  });
}
