import { z } from 'zod';
import { broken, type Diagnosis, ok, warning } from '../../../ports/diagnosis.ts';
import { sentence } from '../../kit/obstacles.ts';
import type { IncusClient } from '../client.ts';

const warningsSchema = z
  .array(
    z.object({
      uuid: z.string(),
      /** `new`, `acknowledged` or `resolved`. */
      status: z.string(),
      severity: z.string(),
      type: z.string(),
      /** The member; `none` without a cluster. */
      location: z.string(),
      /** Path of the resource, such as `/1.0/storage-pools/machines`. Empty for the host. */
      entity_url: z.string(),
      last_message: z.string(),
    }),
  )
  .nullish();
type IncusWarning = NonNullable<z.infer<typeof warningsSchema>>[number];

interface Meaning {
  subject: string;
  finding: string;
  remedy: string;
}

const CGROUPS =
  'Boot the host with the unified cgroup hierarchy (systemd.unified_cgroup_hierarchy=1; cgroup_enable=memory where the kernel leaves memory out) and restart Incus.';

/** Findings for machines, by type of Incus' warning. */
const meanings: Readonly<Record<string, Meaning>> = {
  "Couldn't find the CGroup memory controller": {
    subject: 'memory limits',
    finding: 'They are not enforced: a machine can take all the memory of its host.',
    remedy: CGROUPS,
  },
  "Couldn't find the CGroup CPU controller": {
    subject: 'limits of processor time',
    finding: 'They are not enforced: a machine can starve the others on its host.',
    remedy: CGROUPS,
  },
  "Couldn't find the CGroup CPUset controller": {
    subject: 'processor limits',
    finding: 'They are not enforced: a machine can use every processor of its host.',
    remedy: CGROUPS,
  },
  "Couldn't find the CGroup devices controller": {
    subject: "the host's devices",
    finding: 'Control groups do not block containers from using them.',
    remedy: CGROUPS,
  },
  'AppArmor support has been disabled': {
    subject: 'AppArmor',
    finding: 'It does not confine containers: only their user namespace does.',
    remedy: 'Boot the host with AppArmor (apparmor=1 security=apparmor) and restart Incus.',
  },
  'Time skew detected between leader and local': {
    subject: 'clock of a member',
    finding: "It differs from the leader's, so the cluster may treat members as offline.",
    remedy: 'Run NTP on every member.',
  },
  'Unable to update cluster certificate': {
    subject: 'cluster certificate',
    finding: 'A member has not installed the new one: the other members and Berth may reject it.',
    remedy: "See `incus cluster list` and the member's log, and give Berth the new cluster.crt.",
  },
};

/** Warning types that prevent machines from being made or started, with the resource that they concern. */
const UNAVAILABLE: Readonly<Record<string, string>> = {
  'Storage pool unavailable': 'storage pool',
  'Network unavailable': 'network',
};
const AUTOSTART_FAILURE = 'Failed to autostart instance';
/** Warning types that another check reports. */
const REPORTED_ELSEWHERE = new Set(['Offline cluster member', 'Instance type not operational']);

/** Reports Incus' own warnings, with their effect on machines and a remedy. `names`: the pools and networks in use. */
export async function* diagnoseWarnings(
  client: IncusClient,
  names: readonly string[],
): AsyncGenerator<Diagnosis> {
  let open: IncusWarning[];
  try {
    // Warnings about the host belong to no project.
    const { metadata } = await client.get('/1.0/warnings', { recursion: '1', 'all-projects': 'true' });
    open = (warningsSchema.parse(metadata) ?? []).filter(({ status }) => status === 'new');
  } catch (error) {
    const finding = sentence((error as Error).message);
    return yield broken('warnings of Incus', finding, 'See `incus warning list`.');
  }
  const reported = open
    .filter(({ type }) => !REPORTED_ELSEWHERE.has(type))
    .map((one) => ({ one, diagnosis: diagnosisOf(one, names) }));
  for (const { diagnosis } of reported) if (diagnosis !== undefined) yield diagnosis;
  const rest = reported.filter(({ diagnosis }) => diagnosis === undefined).map(({ one }) => one.type);
  if (rest.length > 0)
    yield ok(
      'warnings of Incus',
      `These do not affect machines of Berth: ${[...new Set(rest)].sort().join('; ')}.`,
    );
  else if (reported.length === 0) yield ok('warnings of Incus', 'There are no warnings.');
}

/** Converts a warning to a finding. Undefined if it does not affect Berth's machines. */
function diagnosisOf(one: IncusWarning, names: readonly string[]): Diagnosis | undefined {
  const { type, severity, entity_url: entity, location, last_message: message, uuid } = one;
  const where = location === 'none' || location === '' ? '' : ` on ${location}`;
  const name = decodeURIComponent(entity.split('?')[0]?.split('/').at(-1) ?? '');
  const meaning = meanings[type];
  if (meaning !== undefined) return warning(`${meaning.subject}${where}`, meaning.finding, meaning.remedy);
  const kind = UNAVAILABLE[type];
  if (kind !== undefined && !names.includes(name)) return undefined;
  if (kind !== undefined)
    return broken(
      `${kind} ${name}${where}`,
      `Incus could not set it up there, and machines that need it do not start: ${sentence(message)}`,
      `Fix the cause; Incus retries every minute. \`incus warning show ${uuid}\` has the details.`,
    );
  if (type === AUTOSTART_FAILURE)
    return warning(
      `instance ${name}${where}`,
      `It did not start with its host: ${sentence(message)}`,
      `Fix the cause and check it with \`incus start ${name}\`. Then \`incus warning acknowledge ${uuid}\`.`,
    );
  if (severity === 'low') return undefined;
  return warning(
    `warning of Incus${where}`,
    `${type}: ${sentence(message)}`,
    `See \`incus warning show ${uuid}\`; run \`incus warning acknowledge ${uuid}\` when it is resolved.`,
  );
}
