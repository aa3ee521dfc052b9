import type { Evidence } from '../../evidence/evidence.ts';
import {
  type Finding,
  judgeEach,
  MissingEvidence,
  notApplicable,
  notTested,
} from '../../evidence/finding.ts';
import {
  FIRST_BOOT,
  LIST_FILE,
  LIST_WORDS,
  OWNED_FILES,
  RUN_FILE,
  RUN_WORD,
  WRITTEN_CONTENT,
  WRITTEN_FILE,
} from '../../scenarios/machine/first-boot.ts';
import { partsOf } from '../../scenarios/machine/printed.ts';
import { hasField, parseJson, stringField } from '../../text/json.ts';
import { shortJson } from '../../text/wording.ts';
import { isSuccess } from '../../transcript/exchange.ts';
import type { SshRecord } from '../../transcript/records.ts';
import type { Check } from '../check.ts';

const scenarios = ['companion', 'companion-alone'];

export const firstBootChecks: readonly Check[] = [
  {
    id: 'BOOT-FILES-001',
    level: 'full',
    scenarios,
    judge: (evidence) =>
      judgePart(evidence, 'written', `${WRITTEN_FILE} with its content, byte for byte`, WRITTEN_CONTENT),
  },
  {
    id: 'BOOT-FILES-002',
    level: 'full',
    scenarios,
    judge: (evidence) => judgeOwners(evidence, ['owned']),
  },
  {
    id: 'BOOT-FILES-003',
    level: 'full',
    scenarios,
    judge: (evidence) => judgeOwners(evidence, ['everyone', 'large']),
  },
  { id: 'BOOT-FILES-004', level: 'full', scenarios, judge: judgeLargeFile },
  {
    id: 'BOOT-CMD-001',
    level: 'full',
    scenarios,
    judge: (evidence) => judgePart(evidence, 'ran', `${RUN_FILE}, which the runcmd writes`, `${RUN_WORD}\n`),
  },
  { id: 'BOOT-CMD-002', level: 'full', scenarios, judge: judgeOrder },
  { id: 'BOOT-CMD-003', level: 'full', scenarios, judge: judgeAfterFailure },
  { id: 'BOOT-CMD-004', level: 'full', scenarios, judge: judgeOnce },
  { id: 'BOOT-IMAGE-001', level: 'full', scenarios, judge: judgeImage },
];

/** The last look, since the first boot may continue after SSH is up. Throws `MissingEvidence` if there is none. */
function lastLook(evidence: Evidence) {
  const looks = evidence.loginsAt(FIRST_BOOT);
  const login = looks.at(-1);
  if (login?.rung !== 'done')
    throw new MissingEvidence(
      notTested(`the login to look at it came no further than ${login?.rung}: ${login?.message}`),
    );
  return { login, parts: partsOf(login), times: looks.length };
}

/** What the machine printed for a part of the script must be `wanted`. */
function judgePart(evidence: Evidence, name: string, expected: string, wanted: string): Finding {
  const { login, parts, times } = lastLook(evidence);
  const printed = parts.get(name);
  return judgeEach(
    [login],
    `files, looked at ${times} times`,
    () =>
      printed === wanted
        ? undefined
        : {
            expected,
            actual: printed ? `the machine printed ${shortJson(printed, 200)}` : 'it is not there',
          },
    () => login,
  );
}

/** Of several files the first one with a wrong mode or owner is judged. */
function judgeOwners(evidence: Evidence, names: readonly (keyof typeof OWNED_FILES)[]): Finding {
  const { parts } = lastLook(evidence);
  if (parts.get('content') && !names.some((name) => parts.get(name)))
    return notApplicable('`stat -c` on the machine', 'it printed nothing for a file that is there');
  const findings = names.map((name) => {
    const { path, permissions, owner } = OWNED_FILES[name];
    const shown = `${permissions.replace(/^0/, '')}:${owner}`;
    return judgePart(evidence, name, `${path} as ${shown}`, `${shown}\n`);
  });
  const [first = notTested('no file was asked for')] = findings;
  return findings.find(({ verdict }) => verdict === 'fail') ?? first;
}

function judgeLargeFile(evidence: Evidence): Finding {
  const { path, content } = OWNED_FILES.large;
  const { length } = content;
  const made = evidence.anySteps('companion/create', 'companion/control').find(isSuccess);
  if (made !== undefined && !made.request.body?.includes(JSON.stringify(content)))
    return notApplicable(
      `a first boot with a file of ${length} bytes`,
      'the create with it was answered 400',
    );
  return judgePart(evidence, 'bytes', `${path} with its ${length} bytes`, `${length} ${path}\n`);
}

/** The lines that the list of commands wrote, if commands ran at all, which BOOT-CMD-001 judges. */
function linesOf(evidence: Evidence): readonly string[] {
  const { parts } = lastLook(evidence);
  if (!parts.get('ran')) throw new MissingEvidence(notTested('no command of runcmd ran'));
  return linesIn(parts.get('list'));
}

const linesIn = (text = ''): readonly string[] => text.split('\n').filter((line) => line !== '');

function judgeLines(login: SshRecord, lines: readonly string[], expected: string, isRight: boolean): Finding {
  return judgeEach(
    [login],
    `lists of commands, with the lines ${lines.join(', ')}`,
    () => (isRight ? undefined : { expected, actual: `the lines ${shortJson(lines, 200)}` }),
    () => login,
  );
}

function judgeOrder(evidence: Evidence): Finding {
  const [first, second, last] = LIST_WORDS;
  const lines = linesOf(evidence);
  const isRight = lines.filter((line) => line !== last).join() === `${first},${second}`;
  const expected = `${LIST_FILE} with the lines ${first}, ${second}`;
  return judgeLines(lastLook(evidence).login, lines, expected, isRight);
}

function judgeAfterFailure(evidence: Evidence): Finding {
  const [, before, after] = LIST_WORDS;
  const lines = linesOf(evidence);
  if (!lines.includes(before)) return notTested('the commands before it did not run');
  const expected = `${LIST_FILE} with the line ${after}, of a command after one that fails`;
  return judgeLines(lastLook(evidence).login, lines, expected, lines.includes(after));
}

/** Commands of the first boot must not run again at a start. */
function judgeOnce(evidence: Evidence): Finding {
  const before = linesOf(evidence);
  const [login] = evidence.loginsAt('companion/started/login');
  const lines = linesIn(partsOf(login ?? {}).get('list'));
  if (login === undefined || lines.length === 0)
    return notTested(`${LIST_FILE} could not be read after the start`);
  const expected = `${LIST_FILE} with each line as often as before the stop`;
  return judgeLines(login, lines, expected, repeatedIn(lines) <= repeatedIn(before));
}

const repeatedIn = (lines: readonly string[]): number => lines.length - new Set(lines).size;

function judgeImage(evidence: Evidence): Finding {
  const asked = evidence.steps('companion/create', 'companion/control').find(isSuccess);
  if (asked === undefined) return notTested('the create was not accepted');
  const wanted = stringField(parseJson(asked.request.body), 'operating_system_image');
  if (wanted === undefined)
    return notApplicable('os_options', 'the offer lists no os_options, or only Windows');
  const companion = evidence.instances.find(({ created }) => created === asked);
  const shown = (companion?.observations ?? []).filter(({ instance }) => hasField(instance, 'image'));
  if (shown.length === 0) return notApplicable('the field image', 'no read of the instance shows its image');
  return judgeEach(
    shown,
    'reads of an instance that was created with an image',
    ({ instance }) =>
      namesImage(instance?.['image'], wanted)
        ? undefined
        : { expected: `image ${wanted}`, actual: `image ${shortJson(instance?.['image'])}` },
    ({ exchange }) => exchange,
  );
}

/** The image may carry a build number or another spelling: the contract defines no image names. */
function namesImage(shown: unknown, wanted: string): boolean {
  return typeof shown === 'string' && shown.toLowerCase().includes(wanted.toLowerCase());
}
