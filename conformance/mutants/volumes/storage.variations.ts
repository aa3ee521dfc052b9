import type { Variation } from '../mutant.ts';
import { ApiError } from '../reference/errors.ts';

const READ = 'GET /volumes/{volumeId}';
const LAG_MS = 500;

/** Lawful variations of the storage tier. */
export const storageVariations: readonly Variation[] = [
  {
    id: 'volumes-of-250-gb-at-least',
    why: 'no least size is shown',
    behave: (rules) => ({
      ...rules,
      validateVolume(body, context) {
        const issues = rules.validateVolume(body, context);
        const { size_gb = 0 } = (body ?? {}) as { size_gb?: number };
        return issues.length > 0 || size_gb >= 250
          ? issues
          : [{ path: 'size_gb', message: 'expected 250 or more' }];
      },
    }),
  },
  {
    id: 'detach-of-none-is-200',
    why: 'a detach has no least number of instances: an empty list names none',
    behave: (rules) => ({
      ...rules,
      validateDetach: (body) =>
        JSON.stringify(body) === '{"instance_ids":[]}' ? [] : rules.validateDetach(body),
    }),
  },
  {
    id: 'cold-detach',
    why: 'what needs the machine off to attach may need it off to detach',
    options: { attach: 'cold', detach: 'cold' },
  },
  {
    id: 'one-503-beside-an-attach',
    why: 'a read that failed says nothing of what it would have shown',
    warns: ['ERR-5XX-001'],
    behave(rules) {
      let isDone = false;
      return {
        ...rules,
        isAuthorized(request, credential) {
          const step = request.headers['user-agent'] ?? '';
          if (isDone || !step.includes('volumes/detach-one/instance-poll'))
            return rules.isAuthorized(request, credential);
          isDone = true;
          throw new ApiError(503, 'unavailable', 'The platform does not answer now.');
        },
      };
    },
  },
  {
    id: 'volume-replica-half-a-second-behind',
    why: 'a status has to be observable within seconds of a change',
    behave(rules, clock) {
      const shownBefore = new Map<string, { atMs: number; shown: Record<string, unknown> }[]>();
      let reads = 0;
      return {
        ...rules,
        showVolume(volume, given, request) {
          const shown = rules.showVolume(volume, given, request);
          const history = shownBefore.get(volume.id) ?? [];
          const isBehind = request.route === READ && ++reads % 2 === 0;
          shownBefore.set(volume.id, [...history, { atMs: clock.now(), shown }]);
          const old = history.findLast(({ atMs }) => clock.now() - atMs >= LAG_MS);
          // What was shown long ago may have changed long ago.
          const isOfLate = old !== undefined && clock.now() - old.atMs < 2 * LAG_MS;
          return isBehind && isOfLate ? old.shown : shown;
        },
      };
    },
  },
];
