import type { Evidence } from '../evidence/evidence.ts';
import type { Exchange } from '../transcript/records.ts';
import { each, type Finding, notTested, type Problem } from '../verdict/finding.ts';
import { isSuccess, jsonOf, objectsField, statusOf, successOf, textField } from '../wire/json.ts';
import type { Check } from './check.ts';
import { describeAnswer } from './create.ts';

export const nameChecks: readonly Check[] = [
  { id: 'NAME-DUP-001', level: 'full', scenarios: ['companion'], judge: judgeSameName },
];

function judgeSameName(evidence: Evidence): Finding {
  const asked = evidence.step('companion/create');
  if (isSuccess(asked)) return each([asked], 'creates with a name that is taken', () => both(evidence), same);
  const [control] = evidence.anySteps('companion/control');
  if (control === undefined || !isSuccess(control))
    return notTested(
      `the create was answered ${describeAnswer(asked)}, and so, with another name, was the same create: ${control === undefined ? 'not sent' : describeAnswer(control)}`,
    );
  return each(
    [asked],
    'creates with a name that is taken',
    () => ({
      expected:
        '201: the same create with another name was accepted, so the name is to be changed and not refused',
      actual: describeAnswer(asked),
    }),
    same,
  );
}

const same = (exchange: Exchange): Exchange => exchange;

/** Both are there, each by its own id. */
function both(evidence: Evidence): Problem[] {
  const list = evidence.step('companion/list');
  const reads = [evidence.step('companion/read'), evidence.step('companion/read-first')];
  const ids = reads.map(({ request }) => idIn(request.path));
  const problems: Problem[] = reads
    .filter((read) => statusOf(read) !== 200 || textField(successOf(read), 'id') !== idIn(read.request.path))
    .map((read) => ({
      expected: `${idIn(read.request.path)} is read by its id, though another has its name`,
      actual: isSuccess(read) ? `the instance ${textField(successOf(read), 'id')}` : describeAnswer(read),
      shown: read,
    }));
  if (new Set(ids).size < ids.length)
    problems.push({ expected: 'an id of its own', actual: `${ids[0]}, which is the first instance` });
  const listed = new Set(objectsField(jsonOf(list), 'instances').map((instance) => instance['id']));
  for (const id of ids)
    if (isSuccess(list) && !listed.has(id))
      problems.push({ expected: `${id} is listed`, actual: 'it is not in the list', shown: list });
  return problems;
}

function idIn(path: string): string {
  return decodeURIComponent(path.split('?')[0]?.split('/')[2] ?? '');
}
