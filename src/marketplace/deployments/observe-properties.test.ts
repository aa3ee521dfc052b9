import fc from 'fast-check';
import { expect, it } from 'vitest';
import { intent } from '../../../test/support/rows/marketplace-rows.ts';
import { canTransition } from '../../contract/transitions.ts';
import { deploymentStatuses, deploymentTransitions } from '../contract/deployment.ts';
import { instanceTypes } from '../contract/values.ts';
import type { DeploymentRecord } from '../model/deployment-record.ts';
import { actionKinds, judgeAt, read, recordOf, start, statuses } from './observe.fixture.ts';
import type { Judgement, Observation } from './observe.ts';

const problems = ['unreachable', 'timeout', 'invalid', 'unauthorized', 'failed', 'limited'] as const;
const readings = fc
  .record({
    reported: fc.constantFrom(...statuses),
    updatedMs: fc.integer({ min: -1e9, max: 1e9 }),
    isVolumeChanging: fc.boolean(),
  })
  .map(({ reported, updatedMs, isVolumeChanging }) => ({
    ...read(reported, updatedMs),
    isVolumeChanging,
  }));
const observations: fc.Arbitrary<Observation> = fc.oneof(
  readings,
  fc.constantFrom<Observation>(
    { gone: true },
    { gone: true, isListed: true },
    { gone: true, isListed: false },
  ),
  fc.constantFrom(...problems).map((problem) => ({ problem })),
);
const records = fc
  .record({
    status: fc.constantFrom(...deploymentStatuses),
    instanceType: fc.constantFrom(...instanceTypes),
    kind: fc.constantFrom(null, ...actionKinds),
    attempt: fc.constantFrom(0, 1),
  })
  .map(({ status, instanceType, kind, attempt }) =>
    recordOf(status, {
      instanceType,
      action: kind === null ? null : intent(kind, { since: start, attempt }),
    }),
  );
const histories = fc.array(fc.tuple(fc.integer({ min: 1, max: 60_000 }), observations), { maxLength: 40 });

type Change = Extract<Judgement, { kind: 'change' }>;

/** The record after a judgement. */
function after(record: DeploymentRecord, judgement: Judgement, at: number): DeploymentRecord {
  switch (judgement.kind) {
    case 'hold':
      return record;
    case 'suspect':
      return { ...record, suspicion: judgement.suspicion };
    case 'confirm':
      return { ...record, suspicion: null, observedAt: at };
    case 'change':
      return { ...record, status: judgement.to, suspicion: null, action: null, observedAt: at };
  }
}

function assertHasReason({ to }: Change, observation: Observation, notFound: number): void {
  if (to === 'running') expect(observation).toMatchObject({ instance: { status: 'ONLINE' } });
  else if (to === 'stopped') expect(observation).toMatchObject({ instance: { status: 'STOPPED' } });
  else if ('instance' in observation)
    expect(['OFFLINE', 'DESTROYING', 'DESTROYED', 'ERROR']).toContain(observation.instance.status);
  else {
    expect(observation).toEqual({ gone: true, isListed: false });
    expect(notFound).toBeGreaterThanOrEqual(2);
  }
}

it('keeps transitions legal, times in order and every end with a reason, for any answers of a provider [observation-properties]', () => {
  fc.assert(
    fc.property(records, histories, (first, history) => {
      let record = first;
      let at = start;
      let notFound = 0;
      for (const [ms, observation] of history) {
        at += ms;
        if ('gone' in observation) notFound++;
        const judgement = judgeAt(record, observation, at);
        if ('problem' in observation) expect(judgement.kind).toBe('hold');
        if (judgement.kind === 'change') {
          expect(canTransition(deploymentTransitions, record.status, judgement.to)).toBe(true);
          expect(judgement.at).toBeGreaterThanOrEqual(record.observedAt ?? start);
          expect(judgement.at).toBeLessThanOrEqual(at);
          assertHasReason(judgement, observation, notFound);
        }
        record = after(record, judgement, at);
      }
    }),
    { numRuns: 500 },
  );
});
