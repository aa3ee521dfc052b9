import type { Evidence } from '../../evidence/evidence.ts';
import { type Finding, judgeEachExchange } from '../../evidence/finding.ts';
import { objectsField, stringField } from '../../text/json.ts';
import { answerOf, isSuccess, jsonOf, successOf } from '../../transcript/exchange.ts';
import type { Exchange } from '../../transcript/records.ts';
import { type Check, withoutRateLimited } from '../check.ts';

export const otherAccountChecks: readonly Check[] = [
  { id: 'KEYS-ACCOUNT-001', level: 'lifecycle', scenarios: ['other-account'], judge: judgeStranger },
];

function judgeStranger(evidence: Evidence): Finding {
  const asked = withoutRateLimited(
    evidence.steps('other-account/read', 'other-account/list', 'other-account/stop', 'other-account/delete'),
  );
  const ids = evidence.instances.map(({ id }) => id);
  return judgeEachExchange(asked, 'requests with the key of another account', (exchange) =>
    exchange.step === 'other-account/list' ? listProblemOf(exchange, ids) : readProblemOf(exchange, ids),
  );
}

/** A stop or a DELETE must not be accepted, whatever its answer shows. Other checks judge the status of a refusal. */
function readProblemOf(exchange: Exchange, ids: readonly string[]) {
  const isRead = exchange.request.method === 'GET';
  const shows = ids.includes(stringField(successOf(exchange), 'id') ?? '');
  if (isRead ? !shows : !isSuccess(exchange)) return undefined;
  return {
    expected: '404: the instance is of another account',
    actual: `another account may ${exchange.step.replace(/^.*\//, '')} it: ${answerOf(exchange)} (if both keys are of one account, the second is one for --second-api-key-file)`,
  };
}

function listProblemOf(exchange: Exchange, ids: readonly string[]) {
  const listed = isSuccess(exchange) ? objectsField(jsonOf(exchange), 'instances') : [];
  const foreign = listed.map((instance) => stringField(instance, 'id') ?? '').find((id) => ids.includes(id));
  return foreign === undefined
    ? undefined
    : {
        expected: 'a list without the instances of another account',
        actual: `another account lists ${foreign}`,
      };
}
