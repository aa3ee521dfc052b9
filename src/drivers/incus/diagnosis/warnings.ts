import { z } from 'zod';
import { broken, type Diagnosis, ok, warning } from '../../../ports/diagnosis.ts';
import { sentence } from '../../kit/diagnosis.ts';
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

const CGROUPS =
  'Without it, machines are not limited or confined. Boot the host with the unified cgroup hierarchy (systemd.unified_cgroup_hierarchy=1; cgroup_enable=memory where the kernel leaves memory out) and restart Incus.';

/** What helps, by type of the warnings that affect machines. Incus gives most of them a low severity. */
const remedies: Readonly<Record<string, string>> = {
  "Couldn't find the CGroup memory controller": CGROUPS,
  "Couldn't find the CGroup CPU controller": CGROUPS,
  "Couldn't find the CGroup CPUset controller": CGROUPS,
  "Couldn't find the CGroup devices controller": CGROUPS,
  'AppArmor support has been disabled':
    'Only their user namespace confines containers. Boot the host with AppArmor (apparmor=1 security=apparmor) and restart Incus.',
  'Time skew detected between leader and local': 'Run NTP on every member.',
  'Unable to update cluster certificate':
    "See `incus cluster list` and the member's log, and give Berth the new cluster.crt.",
  'Failed to autostart instance': 'Fix the cause and check it with `incus start`.',
};
/** Types of the warnings that keep machines from being made or started. */
const UNAVAILABLE = new Set(['Storage pool unavailable', 'Network unavailable']);
/** Warning types that another check reports. */
const REPORTED_ELSEWHERE = new Set(['Offline cluster member', 'Instance type not operational']);

/** Reports Incus' own warnings, in its words, with a remedy. `names`: the pools and networks in use. */
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
  const isUnavailable = UNAVAILABLE.has(type);
  const remedy = remedies[type] ?? 'Fix the cause.';
  if (isUnavailable ? !names.includes(name) : severity === 'low' && !(type in remedies)) return undefined;
  return (isUnavailable ? broken : warning)(
    `warning of Incus${where}`,
    sentence([name === '' ? type : `${type} (${name})`, message].filter(Boolean).join(': ')),
    `${remedy} \`incus warning show ${uuid}\` has the details; acknowledge it when it is resolved.`,
  );
}
