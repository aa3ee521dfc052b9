import type { Evidence } from '../../evidence/evidence.ts';
import { type Finding, judgeEach, notApplicable, notTested } from '../../evidence/finding.ts';
import {
  OWNED_FILE,
  OWNED_FILE_OWNER,
  OWNED_FILE_PERMISSIONS,
  RUN_FILE,
  RUN_WORD,
  WRITTEN_CONTENT,
  WRITTEN_FILE,
} from '../../scenarios/machine/first-boot.ts';
import { printedBy } from '../../scenarios/machine/printed.ts';
import { hasField, parseJson, stringField } from '../../text/json.ts';
import { shortJson } from '../../text/wording.ts';
import { isSuccess } from '../../transcript/exchange.ts';
import type { Check } from '../check.ts';

const scenarios = ['companion', 'companion-alone'];

export const firstBootChecks: readonly Check[] = [
  {
    id: 'BOOT-FILES-001',
    level: 'full',
    scenarios,
    judge: (evidence) =>
      judgeOutput(
        evidence,
        'companion/file',
        `${WRITTEN_FILE} with its content, byte for byte`,
        WRITTEN_CONTENT,
      ),
  },
  {
    id: 'BOOT-FILES-002',
    level: 'full',
    scenarios,
    judge: (evidence) => {
      const shown = `${OWNED_FILE_PERMISSIONS.replace(/^0/, '')}:${OWNED_FILE_OWNER}\n`;
      return judgeOutput(evidence, 'companion/owner', `${OWNED_FILE} as ${shown.trim()}`, shown);
    },
  },
  {
    id: 'BOOT-CMD-001',
    level: 'full',
    scenarios,
    judge: (evidence) =>
      judgeOutput(evidence, 'companion/ran', `${RUN_FILE}, which the runcmd writes`, `${RUN_WORD}\n`),
  },
  { id: 'BOOT-IMAGE-001', level: 'full', scenarios, judge: judgeImage },
];

/** Judges the last attempt, since the first boot may continue after SSH is up. */
function judgeOutput(evidence: Evidence, step: string, what: string, wanted: string): Finding {
  const looks = evidence.loginsAt(step);
  const last = looks.at(-1);
  if (last?.rung !== 'done')
    return notTested(`the login to look at it came no further than ${last?.rung}: ${last?.message}`);
  return judgeEach(
    [last],
    `files, looked at ${looks.length} times`,
    (login) =>
      login.exitCode === 0 && printedBy(login) === wanted
        ? undefined
        : {
            expected: what,
            actual:
              login.exitCode === 0
                ? `the machine printed ${shortJson(printedBy(login) ?? login.stdout, 200)}`
                : `the command exited with ${login.exitCode}, ${looks.length} times until ${Math.round(last.endedAt / 1000)} s`,
          },
    (login) => login,
  );
}

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
