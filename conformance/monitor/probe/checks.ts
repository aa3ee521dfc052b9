import type { Check } from '../../checks/check.ts';
import type { Requirement } from '../../contract/requirements.ts';
import type { Evidence } from '../../evidence/evidence.ts';
import { type Finding, judgeEach, notTested, type Problem } from '../../evidence/finding.ts';
import { reads } from '../../evidence/instances.ts';
import { printedBy } from '../../scenarios/machine/printed.ts';
import { idOf } from '../../text/json.ts';
import { listOf } from '../../transcript/exchange.ts';
import type { Exchange, SshRecord } from '../../transcript/records.ts';
import { LOOK, type Markers, markersIn } from './remnants.ts';
import { VISIT, VISIT_AGAIN } from './tenant.ts';

/** What the monitor knows from earlier probes of a provider. */
export interface Known {
  /** The ids of the instances that were read as gone. */
  goneIds: ReadonlySet<string>;
  /** The markers on earlier machines. */
  earlierMarkers: ReadonlySet<string>;
  markers: Markers;
}

/** What the monitor requires beyond the rows of requirements.yaml: it needs days, or several machines. */
export const MONITOR_REQUIREMENTS: readonly Requirement[] = [
  {
    id: 'MON-REACH-001',
    level: 'MUST',
    tier: 'compute',
    place: 'Instance status, ONLINE',
    text: '`ONLINE`: SSH is reachable at the shown endpoint.',
    means: 'A machine that reads ONLINE lets the injected key in, at any moment of its life.',
    cause: 'A machine that died while its record still says ONLINE: look at it on the platform.',
    checks: ['MON-REACH-001'],
  },
  {
    id: 'MON-GONE-001',
    level: 'MUST',
    tier: 'compute',
    place: 'Instances, DELETE',
    text: 'A destroyed instance is gone: no longer listed, and no longer billed.',
    means: 'An instance that read 404 or DESTROYED is in no later list of the account.',
    cause: 'A deletion that the platform did not carry out, and that a later listing takes back.',
    checks: ['MON-GONE-001'],
  },
  {
    id: 'MON-REMNANT-001',
    level: 'MUST',
    tier: 'compute',
    place: 'Monitor',
    text: 'The disk of a new machine holds nothing of an earlier one.',
    means: 'Words that were left on the disk of an earlier machine are on no raw block of a later one.',
    cause: 'Disks that are neither wiped nor zero-filled between two tenants.',
    checks: ['MON-REMNANT-001'],
  },
];

export function monitorChecks(known: Known): Check[] {
  return [
    { id: 'MON-REACH-001', level: 'lifecycle', scenarios: ['plain'], judge: judgeReach },
    { id: 'MON-GONE-001', level: 'read-only', scenarios: ['plain'], judge: (of) => judgeGone(of, known) },
    {
      id: 'MON-REMNANT-001',
      level: 'lifecycle',
      scenarios: ['plain'],
      judge: (of) => judgeRemnants(of, known),
    },
  ];
}

/** A login at a drawn moment; the second one if the first failed. */
export interface Sample {
  login: SshRecord;
  isReached: boolean;
}

/** The logins at drawn moments while the reads around them show ONLINE. One that succeeds when repeated counts as reached. */
export function samplesOf(evidence: Evidence): Sample[] {
  const visits = evidence.logins.filter(({ step }) => step === VISIT || step === VISIT_AGAIN);
  return visits.flatMap((login, index): Sample[] => {
    const isReached = login.rung === 'done' || login.rung === 'execute';
    if (isReached) return [{ login, isReached }];
    if (login.step === VISIT && visits[index + 1]?.step === VISIT_AGAIN) return [];
    // Without a second login, the use ended meanwhile.
    return login.step === VISIT_AGAIN && isOnlineAround(evidence, login) ? [{ login, isReached }] : [];
  });
}

function isOnlineAround({ instances }: Evidence, { instanceId, sentAt, endedAt }: SshRecord): boolean {
  const timeline = instances.find(({ id }) => id === instanceId);
  const polled = timeline === undefined ? [] : reads(timeline);
  const before = polled.findLast(({ exchange }) => exchange.endedAt <= sentAt);
  const after = polled.find(({ exchange }) => exchange.sentAt >= endedAt);
  return before?.status === 'ONLINE' && after?.status === 'ONLINE';
}

function judgeReach(evidence: Evidence): Finding {
  evidence.loginsAt(VISIT);
  return judgeEach(
    samplesOf(evidence),
    'logins at drawn moments',
    ({ login, isReached }): Problem | undefined =>
      isReached
        ? undefined
        : {
            expected: 'a login with the injected key, since the machine reads ONLINE',
            actual: `two logins in a minute did not get past “${login.rung}”`,
          },
    ({ login }) => login,
  );
}

function judgeGone({ exchanges }: Evidence, { goneIds }: Known): Finding {
  const lists = exchanges.flatMap((exchange): { exchange: Exchange; back: string[] }[] => {
    const listed = listOf(exchange);
    if (listed === undefined) return [];
    const alive = listed.filter((instance) => instance['status'] !== 'DESTROYED');
    return [{ exchange, back: alive.flatMap((each) => idOf(each) ?? []).filter((id) => goneIds.has(id)) }];
  });
  if (goneIds.size === 0) return notTested('no earlier machine of the monitor has ended yet');
  return judgeEach(
    lists,
    'lists of instances',
    ({ back }) =>
      back.length === 0
        ? undefined
        : {
            expected: 'no instance that was read as gone after its DELETE',
            actual: `${back.length === 1 ? `${back[0]} is` : `${back.join(', ')} are`} listed again`,
          },
    ({ exchange }) => exchange,
  );
}

function judgeRemnants(evidence: Evidence, { earlierMarkers, markers }: Known): Finding {
  const looks = evidence.loginsAt(LOOK).filter((login) => printedBy(login) !== undefined);
  if (looks.length === 0) return notTested('the raw blocks could not be searched');
  if (earlierMarkers.size === 0) return notTested('the monitor has left no marker on an earlier machine yet');
  return judgeEach(
    looks,
    'disks',
    (login) => {
      const found = markersIn(printedBy(login) ?? '', markers).filter((marker) => earlierMarkers.has(marker));
      if (found.length === 0) return undefined;
      return {
        expected: 'no word that the monitor left on an earlier machine',
        actual: `${found.length} of its words on the raw blocks of a new machine`,
      };
    },
    (login) => login,
  );
}
