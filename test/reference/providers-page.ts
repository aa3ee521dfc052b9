import {
  isOfAll,
  type MachineRule,
  type ProviderProfile,
  type VolumeProfile,
} from '../../src/marketplace/providers/profile.ts';

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
    ['stop', (profile) => support(profile, 'no_stop')],
    ['restart', (profile) => support(profile, 'no_restart')],
    ['volumes', ({ volumes }) => (volumes === null ? 'no' : 'yes')],
    ['size, GB', ofVolumes(({ min_size_gb: min, max_size_gb: max }) => `${min} to ${max}`)],
    ['USD per GB and hour', ofVolumes((volumes) => usd(volumes.price_per_gb_hour))],
    ['name, at most', ofVolumes((volumes) => `${volumes.name_max_length} characters`)],
    ['per instance', ofVolumes((volumes) => String(volumes.max_per_instance ?? 'several'))],
    ['on several instances', ofVolumes((volumes) => (volumes.shareable ? 'yes' : 'no'))],
    [
      '`cloudId`',
      ofVolumes((volumes) =>
        Object.values(volumes.regions).some(({ clouds }) => clouds) ? 'required' : 'no',
      ),
    ],
    ['`deploymentId` at create', ofVolumes((volumes) => (volumes.attach_at_create ? 'yes' : 'no'))],
    ['attach later', ofVolumes(attach)],
    ['detach', ofVolumes(({ no_detach: no }) => (no === undefined ? 'yes' : 'when the deployment is over'))],
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

type Action = Parameters<typeof isOfAll>[1];

function support(profile: ProviderProfile, action: Action): string {
  if (isOfAll(profile, action)) return 'no';
  return rules(profile, action).length === 0 ? 'yes' : 'yes, with exceptions';
}

/** The rules with this key, each with its value. */
function rules<K extends keyof MachineRule>({ machines }: ProviderProfile, key: K) {
  return machines.flatMap((rule) => {
    const { [key]: value } = rule;
    return value === undefined ? [] : [{ which: named(rule), value }];
  });
}

function attach({ no_attach: no, attach_restarts_instance: restarts }: VolumeProfile): string {
  if (no !== undefined) return 'no';
  return restarts ? 'yes, restarts the instance' : 'yes';
}

function section(profile: ProviderProfile): string[] {
  const { id, name, machines, volumes } = profile;
  const bridged = machines.flatMap(({ nvlink, offers }) => (nvlink ? (offers ?? []) : []));
  return [
    `## ${name} (\`${id}\`)`,
    '',
    ...reasons('Stop', profile, 'no_stop'),
    ...reasons('Restart', profile, 'no_restart'),
    `- Deploy timeout, minutes: ${rules(profile, 'deploy_timeout_minutes')
      .map(({ value, which }) => `${value} (${which})`)
      .join(', ')}.`,
    ...rules(profile, 'minimum_reservation_minutes').map(
      ({ value, which }) => `- Minimum rental, minutes: ${value} (${which}).`,
    ),
    ...rules(profile, 'stopped_price_per_hour').map(
      ({ value, which }) =>
        `- Stopped, ${usd(value)} USD per hour where the provider announces nothing: ${which}.`,
    ),
    ...(bridged.length === 0 ? [] : [`- Joined by NVLink bridges: ${codes(bridged)}.`]),
    ...(volumes === null ? [] : volumeLines(volumes)),
    '',
  ];
}

function reasons(title: string, profile: ProviderProfile, action: Action): string[] {
  const except = rules(profile, action);
  if (isOfAll(profile, action) || except.length === 0) return [];
  return [`- ${title}: not ${except.map(({ which }) => which).join('; not ')}.`];
}

function volumeLines(volumes: VolumeProfile): string[] {
  const { no_attach: noAttach, no_detach: noDetach, type, mount_command: mount, regions } = volumes;
  return [
    ...(noAttach === undefined ? [] : [`- Attach: ${noAttach}`]),
    ...(noDetach === undefined ? [] : [`- Detach: ${noDetach}`]),
    ...(type === undefined ? [] : [`- Volumes have the type \`${type}\`.`]),
    ...(mount === undefined ? [] : [`- Mounted with \`${mount}\` from \`${volumes.mount_pseudopath}\`.`]),
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

function named({ instance_types: types, regions, offers }: MachineRule): string {
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
