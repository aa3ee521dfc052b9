import type { ShapeProblem } from '../../contract/shapes.ts';
import type { Evidence } from '../../evidence/evidence.ts';
import {
  type Finding,
  judgeEach,
  judgeEachExchange,
  notApplicable,
  notTested,
} from '../../evidence/finding.ts';
import { FRESH_MS, isBefore } from '../../evidence/instances.ts';
import type { VolumeObservation, VolumeTimeline } from '../../evidence/volumes.ts';
import { UNKNOWN_TYPE, VOLUME_REFUSAL_CASES } from '../../scenarios/volumes/refusal-cases.ts';
import { NO_SUCH_SIZE } from '../../scenarios/volumes/volume-steps.ts';
import { isObject, parseJson, stringField } from '../../text/json.ts';
import { shortJson } from '../../text/wording.ts';
import { answerOf, codeOfConflict, isSuccess, statusOf, successOf } from '../../transcript/exchange.ts';
import type { Exchange } from '../../transcript/records.ts';
import {
  type Check,
  judgeStatus,
  listProblem,
  shownStatus,
  stillWaiting,
  unlessCutShort,
  withoutRateLimited,
} from '../check.ts';
import { isNull, judgeObjects } from '../conventions/fields.ts';
import { AFTER_INSTANCE } from './of-instance.ts';

const scenarios = ['volumes'];
const INVALID = [...VOLUME_REFUSAL_CASES, UNKNOWN_TYPE];
const CREATES = ['volumes/create', 'volumes/inline/create', 'companion/volume'];

export const volumeChecks: readonly Check[] = [
  { id: 'VOL-LOC-001', level: 'read-only', scenarios: ['catalog'], judge: judgeLocations },
  { id: 'VOL-CREATE-001', level: 'full', scenarios, judge: judgeCreates },
  { id: 'VOL-CREATE-002', level: 'full', scenarios, judge: judgeMatchesRequest },
  {
    id: 'VOL-INVALID-001',
    level: 'full',
    scenarios,
    judge: (evidence) =>
      judgeStatus(
        evidence.steps('volumes/invalid'),
        'creates of a volume with one defect',
        [400],
        ({ step }) => `400: the create has ${INVALID.find((item) => item.step === step)?.defect}`,
      ),
  },
  {
    id: 'VOL-FIELDS-001',
    level: 'full',
    scenarios,
    judge: (evidence) =>
      judgeFields(
        evidence,
        'every required field, and optional ones of their type or left out',
        ({ fault }) => fault === 'type' || fault === 'missing',
      ),
  },
  {
    id: 'VOL-NULL-001',
    level: 'full',
    scenarios,
    judge: (evidence) => judgeFields(evidence, 'optional fields without a value left out', isNull),
  },
  {
    id: 'VOL-FIELDS-002',
    level: 'full',
    scenarios,
    judge: (evidence) =>
      judgeFields(evidence, 'one of the seven statuses of the contract', ({ fault }) => fault === 'value'),
  },
  { id: 'VOL-READY-001', level: 'full', scenarios, judge: judgeReady },
  { id: 'VOL-READ-001', level: 'full', scenarios, judge: judgeReads },
  {
    id: 'VOL-404-001',
    level: 'read-only',
    scenarios: ['unknown'],
    judge: (evidence) =>
      judgeStatus(
        evidence.steps('unknown/volume'),
        'requests for a volume that was never made',
        [404],
        '404: there is no such volume',
      ),
  },
  { id: 'VOL-DELETE-002', level: 'full', scenarios, judge: judgeDelete },
  { id: 'VOL-DELETE-003', level: 'full', scenarios, judge: judgeGone },
  {
    id: 'VOL-DELETE-004',
    level: 'full',
    scenarios,
    judge: (evidence) =>
      judgeStatus(
        evidence.steps('volumes/delete/again'),
        'DELETEs of a volume that is gone',
        [404],
        '404, which its client takes for success',
      ),
  },
];

function judgeLocations(evidence: Evidence): Finding {
  const read = evidence.step('catalog/locations');
  const problem = listProblem(read, 'locations');
  if (problem !== undefined) return judgeEachExchange([read], 'reads of /volumes/locations', () => problem);
  if (evidence.objects.locations.length === 0)
    return notApplicable('a volume location', 'GET /volumes/locations lists none');
  const expected = 'id and name, and types and country_code of their type or left out';
  return judgeObjects(
    'VolumeLocation',
    evidence.objects.locations,
    'volume locations',
    expected,
    (problem) => !isNull(problem),
  );
}

function fieldOf(value: unknown, name: string): unknown {
  return isObject(value) ? value[name] : undefined;
}

const NO_STORAGE: readonly (string | undefined)[] = ['capacity_unavailable', 'quota_exceeded'];

/** A refusal for the size, or for lack of storage, is lawful: the contract names no minimum size. */
function judgeCreates(evidence: Evidence): Finding {
  evidence.steps('volumes/create');
  const asked = evidence
    .anySteps(...CREATES)
    .filter((exchange) => statusOf(exchange) !== 400 && !NO_STORAGE.includes(codeOfConflict(exchange)));
  if (asked.length === 0) return notTested(`every create was refused with 400 or 409: ${NO_SUCH_SIZE}`);
  return judgeStatus(asked, 'valid creates of a volume', [201], '201, with the volume');
}

interface Seen {
  timeline: VolumeTimeline;
  observation: VolumeObservation;
}

/** Every observation of the run's volumes. Throws `MissingEvidence` if none was created. */
export function volumesSeen(evidence: Evidence): Seen[] {
  evidence.steps('volumes/create');
  return evidence.volumes.flatMap((timeline) =>
    timeline.observations
      .filter(({ volume }) => volume !== undefined)
      .map((observation) => ({ timeline, observation })),
  );
}

const exchangeOf = ({ observation }: Seen): Exchange => observation.exchange;

function judgeFields(
  evidence: Evidence,
  expected: string,
  isLooked: (problem: ShapeProblem) => boolean,
): Finding {
  evidence.steps('volumes/create');
  const { volumes } = evidence.objects;
  return judgeObjects('Volume', volumes, 'volumes in answers', expected, isLooked);
}

function judgeMatchesRequest(evidence: Evidence): Finding {
  return judgeEach(
    volumesSeen(evidence),
    'reads of volumes that the run made',
    ({ timeline, observation }) => {
      const created = evidence.exchanges.find(
        (exchange) =>
          exchange.request.path === '/volumes' && stringField(successOf(exchange), 'id') === timeline.id,
      );
      const wanted = parseJson(created?.request.body);
      return ['name', 'size_gb', 'region', 'type'].flatMap((field) => {
        const shown = observation.volume?.[field];
        const asked = fieldOf(wanted, field);
        const isLeftOut = field === 'type' && (shown === undefined || shown === null || asked === undefined);
        return shown === asked || isLeftOut
          ? []
          : [
              {
                expected: `${field} ${shortJson(asked)}, as it was asked for`,
                actual: `${field} ${shortJson(shown)}`,
              },
            ];
      });
    },
    exchangeOf,
  );
}

function judgeReady(evidence: Evidence): Finding {
  const lasts = [evidence.steps('volumes/create-poll'), evidence.anySteps('companion/volume-poll')].flatMap(
    (polls) => polls.at(-1) ?? [],
  );
  const waiting = lasts
    .map(shownStatus)
    .find((status) => !['AVAILABLE', 'ERROR', 'DELETING'].includes(status));
  if (waiting === 'CREATING') return stillWaiting('a volume', waiting);
  const finding = judgeEachExchange(lasts, 'new volumes', (last) =>
    shownStatus(last) === 'AVAILABLE'
      ? undefined
      : { expected: 'AVAILABLE: nothing was asked of it but to be', actual: shownStatus(last) },
  );
  return unlessCutShort(evidence, finding);
}

/** The DELETE that the target accepted. */
function deletionOf({ deletes }: VolumeTimeline): Exchange | undefined {
  return deletes.find((exchange) => isSuccess(exchange) || statusOf(exchange) === 404);
}

const isRead = ({ exchange }: VolumeObservation): boolean => exchange.request.method === 'GET';

function judgeReads(evidence: Evidence): Finding {
  evidence.steps('volumes/create-poll');
  const reads = evidence.volumes.flatMap((timeline) => {
    const [firstDelete] = timeline.deletes.filter((exchange) => statusOf(exchange) !== 409);
    return timeline.observations
      .filter((observation) => isRead(observation) && !observation.exchange.step.startsWith(AFTER_INSTANCE))
      .filter(({ exchange }) => firstDelete === undefined || isBefore(exchange, firstDelete))
      .map((observation) => ({ timeline, observation }));
  });
  return judgeEach(
    reads,
    'reads of a volume between its 201 and its DELETE',
    ({ timeline, observation }) =>
      observation.status === '404'
        ? { expected: `the volume ${timeline.id}: its deletion was not requested`, actual: '404' }
        : undefined,
    exchangeOf,
  );
}

function judgeDelete(evidence: Evidence): Finding {
  const asked = [
    ...evidence.steps('volumes/delete/delete'),
    ...evidence.anySteps('volumes/force-delete/delete', 'companion/released/delete').filter(isSuccess),
  ];
  return judgeEachExchange(
    withoutRateLimited(asked),
    'DELETEs of a volume that is attached to nothing',
    (exchange) => {
      if (statusOf(exchange) !== 204) return { expected: '204 without a body', actual: answerOf(exchange) };
      const { body = '' } = exchange.answer ?? {};
      return body === ''
        ? undefined
        : { expected: '204 without a body', actual: `a body of ${body.length} bytes` };
    },
  );
}

function judgeGone(evidence: Evidence): Finding {
  evidence.steps('volumes/delete/poll');
  const ended = evidence.volumes.filter((timeline) => {
    const asked = deletionOf(timeline);
    return asked !== undefined && CREATES.some((step) => timeline.resource.step.startsWith(`${step}/`));
  });
  const waiting = ended.find(({ observations }) => observations.at(-1)?.status === 'DELETING');
  if (waiting !== undefined) return stillWaiting('the volume', 'DELETING');
  return judgeEach(
    ended.flatMap(readsAfterDelete),
    'reads of a volume after its DELETE',
    ({ status, hasBeen404, ageMs }) =>
      status === '404' || (status === 'DELETING' && !hasBeen404) || ageMs <= FRESH_MS
        ? undefined
        : {
            expected: hasBeen404 ? '404, for good' : '404, or DELETING until then',
            actual: `status ${status}${hasBeen404 ? ' once more' : ''}`,
          },
    ({ exchange }) => exchange,
  );
}

function readsAfterDelete(timeline: VolumeTimeline) {
  const asked = deletionOf(timeline);
  let hasBeen404 = false;
  return timeline.observations
    .filter(
      (observation) => isRead(observation) && asked !== undefined && isBefore(asked, observation.exchange),
    )
    .map(({ status, exchange }) => {
      const read = { status, exchange, hasBeen404, ageMs: exchange.sentAt - (asked?.endedAt ?? 0) };
      hasBeen404 ||= status === '404';
      return read;
    });
}
