import {
  type Evidence,
  type RequestBetweenReads,
  requestBetweenReads,
  statusShown,
} from '../../evidence/evidence.ts';
import {
  type Finding,
  judgeEach,
  judgeEachExchange,
  notApplicable,
  notTested,
  type Problem,
} from '../../evidence/finding.ts';
import { isBefore } from '../../evidence/instances.ts';
import { stringField } from '../../text/json.ts';
import { answerOf, isSuccess, jsonOf, statusOf, successOf } from '../../transcript/exchange.ts';
import type { Exchange } from '../../transcript/records.ts';
import type { Check } from '../check.ts';

export const stopStartChecks: readonly Check[] = [
  {
    id: 'STOP-200-001',
    level: 'lifecycle',
    scenarios: ['stop'],
    judge: judgeStopAnswer,
  },
  {
    id: 'STOP-END-001',
    level: 'lifecycle',
    scenarios: ['stop'],
    judge: judgeStopEnds,
  },
  {
    id: 'STOP-409-001',
    level: 'lifecycle',
    scenarios: ['boot'],
    judge: (evidence) => judgeRefused(evidence, 'boot', 'stop', 'PROVISIONING'),
  },
  {
    id: 'STOP-409-002',
    level: 'lifecycle',
    scenarios: ['stop'],
    judge: (evidence) => judgeRefused(evidence, 'stop', 'again', 'STOPPED'),
  },
  {
    id: 'STOP-409-003',
    level: 'lifecycle',
    scenarios: ['destroy'],
    judge: (evidence) =>
      judgeEachExchange(
        evidence.steps('destroy/stop', 'destroy/start'),
        'starts and stops of an instance that is being destroyed',
        (exchange) =>
          [404, 409].includes(statusOf(exchange) ?? 0)
            ? undefined
            : { expected: '409, or 404 once it is gone', actual: answerOf(exchange) },
      ),
  },
  {
    id: 'START-200-001',
    level: 'lifecycle',
    scenarios: ['start'],
    judge: (evidence) => {
      const asked = evidence.step('start/post');
      if (statusOf(asked) === 409)
        return notApplicable(
          'resuming a stopped instance',
          'the start of the STOPPED instance was answered 409',
        );
      return judgeAction(evidence, 'start/post', ['STOPPED', 'PROVISIONING', 'ONLINE']);
    },
  },
  {
    id: 'START-END-001',
    level: 'lifecycle',
    scenarios: ['start'],
    judge: judgeStartEnds,
  },
  {
    id: 'START-409-001',
    level: 'lifecycle',
    scenarios: ['online'],
    judge: (evidence) => judgeRefused(evidence, 'online', 'start', 'ONLINE'),
  },
  {
    id: 'START-409-002',
    level: 'lifecycle',
    scenarios: ['boot'],
    judge: (evidence) => judgeRefused(evidence, 'boot', 'start', 'PROVISIONING'),
  },
  {
    id: 'START-409-004',
    level: 'lifecycle',
    scenarios: ['stop'],
    judge: (evidence) => judgeRefused(evidence, 'stop', 'start', 'STOPPING'),
  },
  {
    id: 'START-409-003',
    level: 'lifecycle',
    scenarios: ['start'],
    judge: judgeCannotResume,
  },
  {
    id: 'REFUSE-001',
    level: 'lifecycle',
    scenarios: ['boot', 'online', 'stop'],
    judge: judgeUnchanged,
  },
];

/** The contract speaks of stoppable instances, and leaves open which are. */
function judgeStopAnswer(evidence: Evidence): Finding {
  const asked = evidence.step('stop/post');
  const stopped = evidence.instances.find(({ stops }) => stops.includes(asked));
  const before = stopped?.observations.findLast(({ exchange }) => isBefore(exchange, asked))?.status;
  if (before !== undefined && before !== 'ONLINE' && !isSuccess(asked))
    return notTested(`the instance read ${before} right before it was asked to stop`);
  return statusOf(asked) === 409
    ? notApplicable('stopping an ONLINE instance', 'the stop of the ONLINE instance was answered 409')
    : judgeAction(evidence, 'stop/post', ['STOPPING', 'STOPPED']);
}

function judgeAction(evidence: Evidence, step: string, statuses: readonly string[]): Finding {
  return judgeEachExchange(evidence.steps(step), 'requests', (exchange) => {
    const status = stringField(successOf(exchange), 'status') ?? '';
    return statusOf(exchange) === 200 && statuses.includes(status)
      ? undefined
      : { expected: `200, with the instance ${statuses.join(' or ')}`, actual: answerOf(exchange) };
  });
}

function judgeStopEnds(evidence: Evidence): Finding {
  const last = evidence.steps('stop/poll').at(-1);
  if (!isSuccess(evidence.step('stop/post'))) return notTested('the stop was refused');
  const status =
    last === undefined ? undefined : (stringField(successOf(last), 'status') ?? `${statusOf(last)}`);
  if (status === 'STOPPING' || status === 'ONLINE')
    return notTested(
      `it was still ${status} when the run's patience was over (--ready-timeout-s waits longer)`,
    );
  return judgeEach(
    [last],
    'stops',
    () => (status === 'STOPPED' ? undefined : { expected: 'STOPPED', actual: `it became ${status}` }),
    (exchange) => exchange,
  );
}

function judgeStartEnds(evidence: Evidence): Finding {
  const last = evidence.steps('start/poll').at(-1);
  const status =
    last === undefined ? undefined : (stringField(successOf(last), 'status') ?? `${statusOf(last)}`);
  if (status === 'STOPPED' || status === 'PROVISIONING')
    return notTested(
      `it was still ${status} when the run's patience was over (--ready-timeout-s waits longer)`,
    );
  return judgeEach(
    [last],
    'starts',
    () => (status === 'ONLINE' ? undefined : { expected: 'ONLINE', actual: `it became ${status}` }),
    (exchange) => exchange,
  );
}

/** A request that the status of the instance does not allow is answered 409. */
function judgeRefused(evidence: Evidence, scenario: string, action: string, status: string): Finding {
  evidence.steps(`${scenario}/${action}`);
  const sandwich = requestBetweenReads(evidence, scenario, action);
  if (sandwich === undefined) return notTested('a read before or after it was not answered');
  const { before, asked, after } = sandwich;
  const isSettled = statusShown(after) === status || !isSuccess(asked);
  if (statusShown(before) !== status || (!isSettled && mayHaveMoved(evidence, status, sandwich)))
    return notApplicable(
      `an instance that stays ${status}`,
      `it read ${statusShown(before)} before it was asked, and ${statusShown(after)} after`,
    );
  return judgeEachExchange([asked], `requests of an instance that is ${status}`, () =>
    statusOf(asked) === 409
      ? undefined
      : {
          expected: `409: an instance that is ${status} cannot be asked that`,
          actual: answerOf(asked),
        },
  );
}

/** If no boot was seen, a machine may have booted within this time, in milliseconds. */
const QUICK_BOOT_MS = 5_000;

/** Whether the instance may have left the status by itself before the request, which was then allowed. */
function mayHaveMoved(evidence: Evidence, status: string, { before, asked }: RequestBetweenReads): boolean {
  if (status !== 'PROVISIONING') return true;
  const quickestMs = quickestBootMs(evidence);
  if (quickestMs === Number.POSITIVE_INFINITY) return asked.endedAt - before.sentAt > QUICK_BOOT_MS;
  const created = evidence.instances.find(({ created }) => created !== undefined)?.created;
  return quickestMs <= asked.endedAt - (created?.endedAt ?? 0) + 1000;
}

/** The fastest boot seen on this target, after a 201 or a start, without the time of the answer that shows its end. */
function quickestBootMs(evidence: Evidence): number {
  const boots = evidence.instances.flatMap(({ created, starts, observations }) =>
    [created, ...starts.filter(isSuccess)].flatMap((asked) => {
      const isAfter = (exchange: Exchange) => asked !== undefined && isBefore(asked, exchange);
      const online = observations.find(({ status, exchange }) => status === 'ONLINE' && isAfter(exchange));
      return asked === undefined || online === undefined ? [] : [online.exchange.sentAt - asked.endedAt];
    }),
  );
  return Math.min(...boots);
}

function judgeCannotResume(evidence: Evidence): Finding {
  const asked = evidence.step('start/post');
  if (isSuccess(asked))
    return notApplicable('a platform that cannot resume', 'the start of the STOPPED instance was accepted');
  if (statusOf(asked) !== 409) return notTested(`the start was answered ${answerOf(asked)}`);
  const read = evidence.step('start/read-at-once');
  const message = stringField((jsonOf(asked) as { error?: unknown } | undefined)?.error, 'message');
  const problems: Problem[] = [];
  if (!message) problems.push({ expected: 'an error that says why', actual: 'no message', shown: asked });
  if (statusShown(read) !== 'STOPPED' && statusShown(read) !== 'OFFLINE')
    problems.push({
      expected: 'the instance is still STOPPED: its state is not destroyed in silence',
      actual: `it reads ${statusShown(read) ?? answerOf(read)}`,
      shown: read,
    });
  return judgeEachExchange([asked], 'starts that were refused', () => problems);
}

/** A refused request changes nothing; progress that was under way continues. */
function judgeUnchanged(evidence: Evidence): Finding {
  const asked = [
    ['boot', 'stop'],
    ['boot', 'start'],
    ['online', 'start'],
    ['stop', 'start'],
    ['stop', 'again'],
  ] as const;
  const refused = asked
    .flatMap(([scenario, action]) => requestBetweenReads(evidence, scenario, action) ?? [])
    .filter((sandwich) => (statusOf(sandwich.asked) ?? 0) >= 400);
  return judgeEach(
    refused,
    'requests that were refused, with a read before and after',
    ({ before, after }) => {
      const [was, is] = [statusShown(before), statusShown(after)];
      const goesOn = (was === 'PROVISIONING' && is === 'ONLINE') || (was === 'STOPPING' && is === 'STOPPED');
      return was === is || goesOn
        ? undefined
        : { expected: `still ${was}, since the request was refused`, actual: String(is) };
    },
    ({ after }) => after,
  );
}
