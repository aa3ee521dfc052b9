import type { Evidence } from '../../evidence/evidence.ts';
import { type Finding, judgeEach } from '../../evidence/finding.ts';
import { type Observation, pairs, reads } from '../../evidence/instances.ts';
import { stringField } from '../../text/json.ts';
import type { Check } from '../check.ts';

const scenarios = ['create', 'boot', 'online'];
/** One answer may have seconds precision and another milliseconds. */
const PRECISION_MS = 1000;

/** created_at and updated_at over the life of an instance. */
export const instanceTimeChecks: readonly Check[] = [
  {
    id: 'INS-TIME-001',
    level: 'lifecycle',
    scenarios,
    judge: judgeCreatedAt,
  },
  {
    id: 'INS-TIME-002',
    level: 'lifecycle',
    scenarios,
    judge: judgeMonotone,
  },
  {
    id: 'INS-TIME-003',
    level: 'lifecycle',
    scenarios,
    judge: judgeMoved,
  },
];

function judgeCreatedAt(evidence: Evidence): Finding {
  const first = new Map<string, number>();
  const seen = evidence.instances.flatMap((timeline) =>
    timeline.observations
      .filter(({ instance }) => instance !== undefined)
      .map((observation) => ({ timeline, observation })),
  );
  return judgeEach(
    seen,
    'reads of instances that the run made',
    ({ timeline, observation }) => {
      const created = Date.parse(stringField(observation.instance, 'created_at') ?? '');
      const earlier = first.get(timeline.id) ?? created;
      first.set(timeline.id, earlier);
      if (Math.abs(created - earlier) >= PRECISION_MS)
        return { expected: `created_at ${iso(earlier)}, as before`, actual: `created_at ${iso(created)}` };
      const updated = updatedAt(observation);
      return created - updated >= PRECISION_MS
        ? {
            expected: `updated_at not before created_at ${iso(created)}`,
            actual: `updated_at ${iso(updated)}`,
          }
        : undefined;
    },
    ({ observation }) => observation.exchange,
  );
}

/** Consecutive reads with their updated_at in milliseconds. */
function updates(evidence: Evidence) {
  return evidence.instances
    .flatMap((timeline) => pairs(reads(timeline)))
    .map(([before, after]) => ({ before, after, earlier: updatedAt(before), later: updatedAt(after) }))
    .filter(({ before, after }) => before.instance !== undefined && after.instance !== undefined);
}

function updatedAt({ instance }: Observation): number {
  return Date.parse(stringField(instance, 'updated_at') ?? '');
}

/** An unreadable time is reported by WIRE-TIME-001. */
const iso = (ms: number): string => (Number.isNaN(ms) ? 'not a time' : new Date(ms).toISOString());

function judgeMonotone(evidence: Evidence): Finding {
  return judgeEach(
    updates(evidence),
    'pairs of reads that follow one another',
    ({ earlier, later }) =>
      earlier - later >= PRECISION_MS
        ? {
            expected: `updated_at not before ${iso(earlier)}, which an earlier read showed`,
            actual: `updated_at ${iso(later)}`,
          }
        : undefined,
    ({ after }) => after.exchange,
  );
}

/** Two changes within one second may share an updated_at of seconds precision. */
function judgeMoved(evidence: Evidence): Finding {
  const changes = updates(evidence).filter(({ before, after }) => before.status !== after.status);
  const isMute = updates(evidence).every(({ earlier, later }) => earlier === later);
  return judgeEach(
    changes,
    'changes of status',
    ({ before, after, earlier, later }) => {
      const isWithinOneSecond = !isMute && later % 1000 === 0;
      return later === earlier && !isWithinOneSecond
        ? {
            expected: `an updated_at of its own for ${after.status}`,
            actual: `${iso(later)}, as when it was ${before.status}`,
          }
        : undefined;
    },
    ({ after }) => after.exchange,
  );
}
