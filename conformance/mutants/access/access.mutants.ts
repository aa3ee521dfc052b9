import { onAnswers, onRule, refusal } from '../deviate.ts';
import type { Mutant } from '../mutant.ts';

const GET = 'GET /instances/{instanceId}';
const START = 'POST /instances/{instanceId}/start';
const STOP = 'POST /instances/{instanceId}/stop';
const DELETE = 'DELETE /instances/{instanceId}';

/** Faults in authorization for a live instance, and in its endpoint. */
export const accessMutants: readonly Mutant[] = [
  {
    id: 'anybody-stops-a-live-instance',
    breaks: 'Every endpoint requires the bearer credential.',
    reddens: ['AUTH-LIVE-002'],
    behave: openFor(STOP),
  },
  {
    id: 'anybody-starts-a-live-instance',
    breaks: 'Every endpoint requires the bearer credential.',
    reddens: ['AUTH-LIVE-002'],
    behave: openFor(START),
  },
  {
    id: 'anybody-destroys-a-live-instance',
    breaks: 'Every endpoint requires the bearer credential.',
    reddens: ['AUTH-LIVE-002', 'TRACE-CAUSE-001'],
    behave: openFor(DELETE),
  },
  {
    id: 'every-fifth-read-is-a-500',
    breaks: 'GET /instances/{instanceId} answers 200 with the instance.',
    reddens: ['ERR-5XX-001', 'INS-GET-001'],
    behave: (rules, hit) => {
      let count = 0;
      return {
        ...rules,
        answer(request, answer) {
          const isRead = request.route === GET && answer.status === 200;
          if (!isRead || ++count % 5 > 0) return rules.answer(request, answer);
          hit();
          return refusal(500, 'internal');
        },
      };
    },
  },
  {
    id: 'read-needs-the-region',
    breaks: 'region is optional.',
    reddens: ['INS-REGION-001'],
    behave: onAnswers([GET], (answer, { query }) =>
      answer.status === 200 && !query.has('region') ? refusal(400, 'region_missing') : undefined,
    ),
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
    id: 'stop-while-provisioning-stops',
    breaks: 'stop of an instance that is not stoppable is 409.',
    reddens: ['STOP-409-001'],
    behave: (rules, hit) => ({
      ...rules,
      mayStop(instance) {
        if (instance.status !== 'PROVISIONING') return rules.mayStop(instance);
        hit();
        return true;
      },
    }),
  },
  {
    id: 'off-by-itself',
    breaks: 'STOPPED follows a stop.',
    reddens: ['TRACE-CAUSE-001'],
    behave: (rules, hit, clock) => {
      let count = 0;
      let backAtMs: number | undefined;
      return {
        ...rules,
        showInstance(instance, shown, request) {
          const usual = rules.showInstance(instance, shown, request);
          if (instance.id !== 'i-00001' || instance.status !== 'ONLINE' || request.route !== GET)
            return usual;
          count++;
          if (count === 9) {
            hit();
            instance.updatedAtMs = clock.wall();
            return { ...usual, status: 'STOPPED', updated_at: rules.timestamp(clock.wall()) };
          }
          if (count === 10) backAtMs = clock.wall();
          if (backAtMs !== undefined) instance.updatedAtMs = Math.max(instance.updatedAtMs, backAtMs);
          return rules.showInstance(
            instance,
            { ...shown, updated_at: rules.timestamp(instance.updatedAtMs) },
            request,
          );
        },
      };
    },
  },
];

/** Accepts requests about existing instances without a credential. */
function openFor(route: string): Mutant['behave'] {
  return onRule('isAuthorized', (usual, request, credential) =>
    !usual && credential === 'none' && request.route === route && /i-\d{5}/.test(request.path)
      ? true
      : undefined,
  );
}
