import type { Evidence } from '../evidence/evidence.ts';
import type { Exchange } from '../transcript/records.ts';
import {
  each,
  eachExchange,
  type Finding,
  notApplicable,
  notTested,
  type Problem,
} from '../verdict/finding.ts';
import { isSuccess, jsonOf, statusOf, successOf, textField } from '../wire/json.ts';
import type { Check } from './check.ts';
import { describeAnswer } from './create.ts';

export const stopStartChecks: readonly Check[] = [
  {
    id: 'STOP-200-001',
    level: 'lifecycle',
    scenarios: ['stop'],
    judge: (evidence) => judgeAction(evidence, 'stop/post', ['STOPPING', 'STOPPED']),
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
      eachExchange(
        evidence.steps('destroy/stop', 'destroy/start'),
        'starts and stops of an instance that is being destroyed',
        (exchange) =>
          [404, 409].includes(statusOf(exchange) ?? 0)
            ? undefined
            : { expected: '409, or 404 once it is gone', actual: describeAnswer(exchange) },
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
      return judgeAction(evidence, 'start/post', ['STOPPED', 'ONLINE']);
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

function judgeAction(evidence: Evidence, step: string, statuses: readonly string[]): Finding {
  return eachExchange(evidence.steps(step), 'requests', (exchange) => {
    const status = textField(successOf(exchange), 'status') ?? '';
    return statusOf(exchange) === 200 && statuses.includes(status)
      ? undefined
      : { expected: `200, with the instance ${statuses.join(' or ')}`, actual: describeAnswer(exchange) };
  });
}

function judgeStopEnds(evidence: Evidence): Finding {
  if (!isSuccess(evidence.step('stop/post'))) return notTested('the stop was refused');
  const last = evidence.steps('stop/poll').at(-1);
  const status =
    last === undefined ? undefined : (textField(successOf(last), 'status') ?? `${statusOf(last)}`);
  if (status === 'STOPPING' || status === 'ONLINE')
    return notTested(
      `it was still ${status} when the run's patience was over (--ready-timeout-s waits longer)`,
    );
  return each(
    [last],
    'stops',
    () => (status === 'STOPPED' ? undefined : { expected: 'STOPPED', actual: `it became ${status}` }),
    (exchange) => exchange,
  );
}

function judgeStartEnds(evidence: Evidence): Finding {
  const last = evidence.steps('start/poll').at(-1);
  const status =
    last === undefined ? undefined : (textField(successOf(last), 'status') ?? `${statusOf(last)}`);
  if (status === 'STOPPED')
    return notTested(
      "it was still STOPPED when the run's patience was over (--ready-timeout-s waits longer)",
    );
  return each(
    [last],
    'starts',
    () => (status === 'ONLINE' ? undefined : { expected: 'ONLINE', actual: `it became ${status}` }),
    (exchange) => exchange,
  );
}

interface Sandwich {
  before: Exchange;
  asked: Exchange;
  after: Exchange;
}

/** A request between two reads, by the names of its steps; undefined where a read was not answered. */
function sandwich(evidence: Evidence, scenario: string, action: string): Sandwich {
  return {
    before: evidence.step(`${scenario}/before-${action}`),
    asked: evidence.step(`${scenario}/${action}`),
    after: evidence.step(`${scenario}/after-${action}`),
  };
}

const shown = (exchange: Exchange): string | undefined => textField(successOf(exchange), 'status');

/** What is asked of an instance in a status that does not allow it is 409. */
function judgeRefused(evidence: Evidence, scenario: string, action: string, status: string): Finding {
  const { before, asked, after } = sandwich(evidence, scenario, action);
  if (shown(before) !== status) {
    const seen = shown(before) ?? describeAnswer(before);
    return notApplicable(`an instance that is seen ${status}`, `it read ${seen} before it was asked`);
  }
  const mayHaveChanged = status === 'PROVISIONING' && shown(after) !== status && isSuccess(asked);
  if (mayHaveChanged && shown(after) === 'ONLINE')
    return notApplicable(`an instance that stays ${status}`, 'it came ONLINE while it was asked');
  return eachExchange([asked], `requests of an instance that is ${status}`, () =>
    statusOf(asked) === 409
      ? undefined
      : {
          expected: `409: an instance that is ${status} cannot be asked that`,
          actual: describeAnswer(asked),
        },
  );
}

function judgeCannotResume(evidence: Evidence): Finding {
  const asked = evidence.step('start/post');
  if (isSuccess(asked))
    return notApplicable('a platform that cannot resume', 'the start of the STOPPED instance was accepted');
  if (statusOf(asked) !== 409) return notTested(`the start was answered ${describeAnswer(asked)}`);
  const read = evidence.step('start/read-at-once');
  const message = textField((jsonOf(asked) as { error?: unknown } | undefined)?.error, 'message');
  const problems: Problem[] = [];
  if (!message) problems.push({ expected: 'an error that says why', actual: 'no message', shown: asked });
  if (shown(read) !== 'STOPPED' && shown(read) !== 'OFFLINE')
    problems.push({
      expected: 'the instance is still STOPPED: its state is not destroyed in silence',
      actual: `it reads ${shown(read) ?? describeAnswer(read)}`,
      shown: read,
    });
  return eachExchange([asked], 'starts that were refused', () => problems);
}

/** A refused request changes nothing, but a boot that goes on. */
function judgeUnchanged(evidence: Evidence): Finding {
  const asked = [
    ['boot', 'stop'],
    ['boot', 'start'],
    ['online', 'start'],
    ['stop', 'again'],
  ] as const;
  const refused = asked
    .filter(([scenario, action]) => evidence.anySteps(`${scenario}/after-${action}`).length > 0)
    .map(([scenario, action]) => sandwich(evidence, scenario, action))
    .filter((item) => (statusOf(item.asked) ?? 0) >= 400);
  return each(
    refused,
    'requests that were refused, with a read before and after',
    ({ before, after }) => {
      const isBoot = shown(before) === 'PROVISIONING' && shown(after) === 'ONLINE';
      return shown(before) === shown(after) || isBoot
        ? undefined
        : {
            expected: `still ${shown(before)}, since the request was refused`,
            actual: shown(after) ?? describeAnswer(after),
          };
    },
    ({ after }) => after,
  );
}
