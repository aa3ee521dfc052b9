import { lawfulPaths } from '../../contract/transitions.ts';
import type { Evidence } from '../../evidence/evidence.ts';
import {
  type Finding,
  judgeEach,
  judgeEachExchange,
  notApplicable,
  notTested,
} from '../../evidence/finding.ts';
import { isBefore } from '../../evidence/instances.ts';
import { showsAttachments } from '../../scenarios/volumes/volume-steps.ts';
import { stringField, stringsField } from '../../text/json.ts';
import { printable } from '../../text/printable.ts';
import { duration, shortJson } from '../../text/wording.ts';
import { successOf } from '../../transcript/exchange.ts';
import { type Check, shownStatus, unlessReclaimed } from '../check.ts';
import { volumesSeen } from './volumes.ts';

/** The contract's limit for an instance to come ONLINE; it also applies to a stop-attach-start cycle. */
const ONLINE_LIMIT_MS = 600_000;

export const volumeStateChecks: readonly Check[] = [
  { id: 'VOL-STATUS-001', level: 'full', scenarios: ['volumes'], judge: judgePaths },
  { id: 'VOL-DETACH-004', level: 'full', scenarios: ['volumes'], judge: judgeAgreement },
  { id: 'VOL-ATTACH-005', level: 'full', scenarios: ['volumes'], judge: judgeInstance },
];

/** Statuses of the contract must follow its transitions. Polls may miss statuses, so indirect paths are lawful too. */
function judgePaths(evidence: Evidence): Finding {
  const lawful = lawfulPaths('volume');
  evidence.steps('volumes/create');
  const steps = evidence.volumes.flatMap(({ id, observations }) =>
    observations.flatMap((after, index) => {
      const before = observations
        .slice(0, index)
        .findLast((earlier) => isBefore(earlier.exchange, after.exchange));
      const isKnown = before !== undefined && lawful.has(before.status) && lawful.has(after.status);
      return isKnown ? [{ id, before, after }] : [];
    }),
  );
  return judgeEach(
    steps,
    'reads of a volume that follow one another',
    ({ id, before, after }) =>
      before.status === after.status || lawful.get(before.status)?.has(after.status) === true
        ? undefined
        : {
            expected: `what can follow ${before.status}: ${[...(lawful.get(before.status) ?? [])].join(', ') || '404 alone'}`,
            actual: `${after.status}, ${duration(after.exchange.endedAt - before.exchange.endedAt)} later, of ${shortJson(id)}`,
          },
    ({ after }) => after.exchange,
  );
}

/** A detached volume has no attachment record, and an attached one has one. */
function judgeAgreement(evidence: Evidence): Finding {
  const seen = volumesSeen(evidence);
  const telling = seen.filter(({ observation }) => showsAttachments(observation.volume));
  if (seen.length > 0 && telling.length === 0)
    return notApplicable('attached_instance_ids', 'no answer says to which instances a volume is attached');
  return judgeEach(
    telling,
    'volumes in answers that say what they are attached to',
    ({ observation: { status, volume } }) => {
      const holders = stringsField(volume, 'attached_instance_ids');
      const actual = `${printable(status, 60)}, with attached_instance_ids ${shortJson(holders, 200)}`;
      if (status === 'AVAILABLE' && holders.length > 0)
        return { expected: 'DETACHING until the attachment record is gone', actual };
      return status === 'ATTACHED' && holders.length === 0
        ? { expected: 'the instance that it is attached to', actual }
        : undefined;
    },
    ({ observation }) => observation.exchange,
  );
}

/**
 * The instance stays ONLINE or goes through a stop and a start; at the end it is ONLINE and accepts logins as before.
 * Reads without a status (404, 5xx) are judged elsewhere.
 */
function judgeInstance(evidence: Evidence): Finding {
  evidence.steps('volumes/instance/poll');
  const reads = evidence.exchanges
    .filter(
      ({ step, request }) =>
        step.startsWith('volumes/') && request.method === 'GET' && request.path.startsWith('/instances/'),
    )
    .filter((read) => stringField(successOf(read), 'status') !== undefined);
  const last = reads.findLast(({ step }) => step === 'volumes/instance/poll');
  if (last === undefined) return notTested('no read of the instance afterwards showed a status');
  const status = shownStatus(last);
  const isWaiting = ['STOPPING', 'STOPPED'].includes(status);
  const since = reads.findLastIndex((read) => shownStatus(read) !== status) + 1;
  const waitedMs = last.endedAt - (reads[since]?.sentAt ?? 0);
  if (isWaiting && waitedMs < ONLINE_LIMIT_MS)
    return notTested(
      `the instance was still ${status} after ${duration(waitedMs)} (--ready-timeout-s waits longer)`,
    );
  const logins = status === 'ONLINE' ? evidence.loginsAt('volumes/instance/login') : [];
  const couldBefore = evidence.logins.some(
    ({ step, rung }) => step === 'online/login-first' && rung === 'done',
  );
  const failed = couldBefore ? logins.find(({ rung }) => rung !== 'done') : undefined;
  const finding = judgeEachExchange(
    reads,
    'reads of the instance while volumes were attached and detached',
    (read) => {
      const seen = shownStatus(read);
      if (!['ONLINE', 'STOPPING', 'STOPPED'].includes(seen))
        return { expected: 'ONLINE, or STOPPING and STOPPED on the way back to it', actual: seen };
      if (read !== last) return undefined;
      if (seen !== 'ONLINE')
        return {
          expected: 'ONLINE again, once nothing is being attached',
          actual: `${seen} after ${duration(waitedMs)}`,
        };
      return failed === undefined
        ? undefined
        : {
            expected: 'SSH, since the instance reads ONLINE',
            actual: `the login came no further than ${failed.rung}: ${failed.message}`,
            shown: failed,
          };
    },
  );
  return unlessReclaimed(evidence, finding);
}
