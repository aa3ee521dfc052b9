import type { ProviderProfile, Selection, VolumeProfile } from '../../src/marketplace/providers/profile.ts';

/** docs/providers.md: the profiles that come with Berth, for readers. */
export function providersPage(profiles: readonly ProviderProfile[]): string {
  return [
    '# Providers',
    '',
    'The rules of the seven providers, written from `fixtures/providers/*.yaml` (`npm run generate`).',
    '',
    ...overview(profiles),
    ...profiles.flatMap(section),
  ].join('\n');
}

function overview(profiles: readonly ProviderProfile[]): string[] {
  const rows: [string, (profile: ProviderProfile) => string][] = [
    ['stop', ({ instances: { stop } }) => support(stop)],
    ['restart', ({ instances: { restart } }) => support(restart)],
    ['volumes', ({ volumes }) => (volumes === null ? 'no' : 'yes')],
    ['size, GB', ofVolumes(({ size_gb: { min, max } }) => `${min} to ${max}`)],
    ['USD per GB and hour', ofVolumes((volumes) => usd(volumes.price_per_gb_hour))],
    ['name, at most', ofVolumes((volumes) => `${volumes.name_max_length} characters`)],
    ['per instance', ofVolumes((volumes) => String(volumes.max_per_instance ?? 'several'))],
    ['on several instances', ofVolumes((volumes) => (volumes.shareable ? 'yes' : 'no'))],
    ['`cloudId`', ofVolumes((volumes) => (volumes.cloud_id ? 'required' : 'no'))],
    ['`deploymentId` at create', ofVolumes((volumes) => (volumes.attach_at_create ? 'yes' : 'no'))],
    ['attach later', ofVolumes(attach)],
    [
      'detach',
      ofVolumes(({ detach }) => (detach.allowed === 'always' ? 'yes' : 'when the deployment is over')),
    ],
    ['grow', ofVolumes((volumes) => (volumes.grow ? 'yes' : 'no'))],
    ['rename', ofVolumes((volumes) => (volumes.rename ? 'yes' : 'no'))],
  ];
  return [
    line(['', ...profiles.map(({ id }) => `\`${id}\``)]),
    `|${'---|'.repeat(profiles.length + 1)}`,
    ...rows.map(([title, cell]) => line([title, ...profiles.map(cell)])),
    '',
  ];
}

function ofVolumes(cell: (volumes: VolumeProfile) => string): (profile: ProviderProfile) => string {
  return ({ volumes }) => (volumes === null ? '' : cell(volumes));
}

function support(action: ProviderProfile['instances']['stop']): string {
  if (!action.supported) return 'no';
  return action.except.length === 0 ? 'yes' : 'yes, with exceptions';
}

function attach({ attach: rule }: VolumeProfile): string {
  if (!rule.supported) return 'no';
  return rule.restarts_instance ? 'yes, restarts the instance' : 'yes';
}

function section({ id, name, instances, volumes, notes }: ProviderProfile): string[] {
  const { stop, restart, deploy_timeouts: timeouts, minimum_reservations: reservations } = instances;
  return [
    `## ${name} (\`${id}\`)`,
    '',
    ...reasons('Stop', stop),
    ...reasons('Restart', restart),
    `- Deploy timeout, minutes: ${timeouts.map(({ minutes, ...which }) => `${minutes} (${named(which)})`).join(', ')}.`,
    ...reservations.map(
      ({ minutes, ...which }) => `- Minimum rental, minutes: ${minutes} (${named(which)}).`,
    ),
    ...instances.stopped_prices.map(
      ({ stopped_price_per_hour: price, ...which }) =>
        `- Stopped, ${usd(price)} USD per hour where the provider announces nothing: ${named(which)}.`,
    ),
    ...(instances.nvlink_offers.length === 0
      ? []
      : [`- Joined by NVLink bridges: ${codes(instances.nvlink_offers)}.`]),
    ...(volumes === null ? [] : volumeLines(volumes)),
    ...notes.map((note) => `- ${note}`),
    '',
  ];
}

function reasons(title: string, action: ProviderProfile['instances']['stop']): string[] {
  if (!action.supported || action.except.length === 0) return [];
  return [`- ${title}: not ${action.except.map(named).join('; not ')}.`];
}

function volumeLines(volumes: VolumeProfile): string[] {
  const { attach: rule, detach, type, mount, regions } = volumes;
  return [
    ...(rule.supported ? [] : [`- Attach: ${rule.reason}`]),
    ...(detach.reason === undefined ? [] : [`- Detach: ${detach.reason}`]),
    ...(type === undefined ? [] : [`- Volumes have the type \`${type}\`.`]),
    ...(mount === undefined ? [] : [`- Mounted with \`${mount.command}\` from \`${mount.pseudopath}\`.`]),
    ...Object.entries(regions).flatMap(([region, own]) => [
      ...(own.max_size_gb === undefined ? [] : [`- At most ${own.max_size_gb} GB in \`${region}\`.`]),
      ...(own.price_per_gb_hour === undefined
        ? []
        : [`- ${usd(own.price_per_gb_hour)} USD per GB and hour in \`${region}\`.`]),
      ...(own.nfs_endpoint === undefined
        ? []
        : [`- NFS endpoint of \`${region}\`: \`${own.nfs_endpoint}\`.`]),
      ...(own.clouds ?? []).map(
        (cloud) =>
          `- Cloud \`${cloud.id}\` of \`${region}\`: ${cloud.name}, ${usd(cloud.price_per_gb_hour ?? own.price_per_gb_hour ?? volumes.price_per_gb_hour)} USD per GB and hour.`,
      ),
    ]),
  ];
}

function named({ instance_types: types, regions, offers }: Selection): string {
  const parts = [
    ...(types === undefined ? [] : [codes(types)]),
    ...(offers === undefined ? [] : [codes(offers)]),
    ...(regions === undefined ? [] : [`in ${codes(regions)}`]),
  ];
  return parts.length === 0 ? 'all others' : parts.join(' ');
}

function codes(names: readonly string[]): string {
  return names.map((name) => `\`${name}\``).join(', ');
}

function usd(price: number): string {
  return price.toFixed(6).replace(/\.?0+$/, '');
}

function line(cells: readonly string[]): string {
  return `| ${cells.join(' | ')} |`;
}
