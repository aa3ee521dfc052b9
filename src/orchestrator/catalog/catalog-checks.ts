import type { OfferFile, RegionFile } from './catalog-schema.ts';

/** A problem and its place. `at: 'key'`: the problem concerns the key, not its value. */
export type CatalogIssue = {
  code: 'custom';
  path: (string | number)[];
  message: string;
  params?: { at: 'key' };
};

interface Parts {
  /** Every token in the file, including those of malformed regions. */
  knownTokens: ReadonlySet<string>;
  regions: readonly { token: string; region: RegionFile }[];
  offers: readonly { index: number; offer: OfferFile }[];
}

/** Finds problems that involve several fields: duplicates, dangling references, contradictions and leaks. */
export function crossCheck(parts: Parts): CatalogIssue[] {
  return [
    ...parts.regions.flatMap(({ token, region }) => [
      ...volumeTypeIssues(token, region),
      ...storageIssues(token, region),
    ]),
    ...duplicateIssues(
      parts.regions.map(({ token, region }) => ({
        value: region.datacenter,
        path: ['regions', token, 'datacenter'],
      })),
    ),
    ...duplicateIssues(
      parts.offers.map(({ index, offer }) => ({ value: offer.id, path: ['offers', index, 'id'] })),
    ),
    ...gpuSpellingIssues(parts.offers),
    ...parts.offers.flatMap(({ index, offer }) =>
      offerIssues(offer, parts.knownTokens).map((issue) => ({
        ...issue,
        path: ['offers', index, ...issue.path],
      })),
    ),
    ...leakIssues(parts),
  ];
}

function issue(path: CatalogIssue['path'], message: string): CatalogIssue {
  return { code: 'custom', path, message };
}

function duplicateIssues(entries: { value: string; path: (string | number)[] }[]): CatalogIssue[] {
  const seen = new Set<string>();
  return entries.flatMap(({ value, path }) => {
    if (seen.has(value)) return [issue(path, `expected a unique value, but "${value}" is already used`)];
    seen.add(value);
    return [];
  });
}

function volumeTypeIssues(token: string, region: RegionFile): CatalogIssue[] {
  const path = ['regions', token, 'volume_types'];
  return [
    ...duplicateIssues(
      region.volume_types.map(({ name }, index) => ({ value: name, path: [...path, index, 'name'] })),
    ),
    ...region.volume_types.flatMap((type, index) =>
      type.min_size_gb > type.max_size_gb
        ? [issue([...path, index, 'min_size_gb'], `expected at most max_size_gb (${type.max_size_gb})`)]
        : [],
    ),
  ];
}

function storageIssues(token: string, { volume_types, storage_capacity_gb }: RegionFile): CatalogIssue[] {
  return storage_capacity_gb === undefined || volume_types.length > 0
    ? []
    : [
        issue(
          ['regions', token, 'storage_capacity_gb'],
          'expected volume_types as well: the region sells no volumes',
        ),
      ];
}

/** O: Configuration, gpu_type: "consistent across offers". */
function gpuSpellingIssues(offers: Parts['offers']): CatalogIssue[] {
  const spellings = new Map<string, string>();
  return offers.flatMap(({ index, offer }) => {
    if (offer.gpu_type === undefined) return [];
    const normalized = offer.gpu_type.toLowerCase().replace(/[^a-z0-9]/g, '');
    const first = spellings.get(normalized) ?? offer.gpu_type;
    spellings.set(normalized, first);
    return first === offer.gpu_type
      ? []
      : [issue(['offers', index, 'gpu_type'], `expected the same spelling as before: "${first}"`)];
  });
}

function offerIssues(offer: OfferFile, knownTokens: ReadonlySet<string>): CatalogIssue[] {
  return [
    ...gpuIssues(offer),
    ...priceIssues(offer),
    ...rootDiskIssues(offer),
    ...osIssues(offer),
    ...capacityIssues(offer, knownTokens),
    ...extrasIssues(offer),
  ];
}

function gpuIssues({ gpu_count = 0, gpu_type, gpu_memory_gb }: OfferFile): CatalogIssue[] {
  if (gpu_count > 0)
    return gpu_type === undefined
      ? [issue(['gpu_type'], 'missing: an offer with gpu_count needs a gpu_type')]
      : [];
  const message = 'expected a gpu_count above 0 as well';
  return [
    ...(gpu_type === undefined ? [] : [issue(['gpu_type'], message)]),
    ...(gpu_memory_gb === undefined ? [] : [issue(['gpu_memory_gb'], message)]),
  ];
}

function priceIssues({
  instance_type,
  price_per_hour,
  spot_price_per_hour: spot,
  stopped_price_per_hour: stopped,
}: OfferFile): CatalogIssue[] {
  const running = spot ?? price_per_hour;
  const isTooDear = stopped !== undefined && stopped > running;
  return [
    ...spotPriceIssues({ instance_type, price_per_hour, spot_price_per_hour: spot }),
    ...(isTooDear
      ? [issue(['stopped_price_per_hour'], `expected at most its price while running (${running})`)]
      : []),
  ];
}

function spotPriceIssues({
  instance_type,
  price_per_hour,
  spot_price_per_hour: spot,
}: Pick<OfferFile, 'instance_type' | 'price_per_hour' | 'spot_price_per_hour'>): CatalogIssue[] {
  if (instance_type !== 'SPOT')
    return spot === undefined
      ? []
      : [
          issue(
            ['spot_price_per_hour'],
            `only an offer of instance_type SPOT is sold at a spot price, this one is ${instance_type}`,
          ),
        ];
  if (spot === undefined)
    return [issue(['spot_price_per_hour'], 'missing: an offer of instance_type SPOT needs a spot price')];
  return spot > price_per_hour
    ? [issue(['spot_price_per_hour'], `expected at most price_per_hour (${price_per_hour})`)]
    : [];
}

function rootDiskIssues({ root_disk: disk, storage_gb }: OfferFile): CatalogIssue[] {
  if (disk === undefined) return [];
  if (disk.min_gb > disk.max_gb)
    return [issue(['root_disk', 'min_gb'], `expected at most max_gb (${disk.max_gb})`)];
  if (storage_gb < disk.min_gb || storage_gb > disk.max_gb)
    return [
      issue(
        ['root_disk'],
        `expected a range that includes storage_gb (${storage_gb}), the size when a create asks for none`,
      ),
    ];
  return [];
}

function osIssues({ os_options }: OfferFile): CatalogIssue[] {
  return duplicateIssues(os_options.map((value, index) => ({ value, path: ['os_options', index] })));
}

function capacityIssues({ capacity }: OfferFile, knownTokens: ReadonlySet<string>): CatalogIssue[] {
  const tokens = Object.keys(capacity);
  if (tokens.length === 0)
    return [issue(['capacity'], 'expected at least one region; write 0 units where the offer is sold out')];
  return tokens
    .filter((token) => !knownTokens.has(token))
    .map((token) => ({
      ...issue(['capacity', token], `unknown region; expected one of: ${[...knownTokens].join(', ')}`),
      params: { at: 'key' },
    }));
}

/** Refuses `extras.berth`: Berth writes its own features there. */
function extrasIssues({ extras = {} }: OfferFile): CatalogIssue[] {
  if (!Object.hasOwn(extras, 'berth')) return [];
  const found = issue(
    ['extras', 'berth'],
    'is set by Berth: use restartable, stopped_price_per_hour and minimum_reservation_minutes of the offer instead',
  );
  return [{ ...found, params: { at: 'key' } }];
}

/** O: conventions, 5: internal datacenter codes never appear in responses. */
function leakIssues({ regions, offers }: Parts): CatalogIssue[] {
  // A token equal to its region's code makes the code public.
  const codes = regions.flatMap(({ token, region: { datacenter } }) =>
    token.toLowerCase() === datacenter.toLowerCase() ? [] : [datacenter],
  );
  const texts = [
    ...regions.flatMap(({ token, region }) => [
      { path: ['regions', token], text: token, isKey: true },
      ...fieldTexts(region, ['name'], ['regions', token]),
      ...region.volume_types.flatMap((type, index) =>
        fieldTexts(type, ['name'], ['regions', token, 'volume_types', index]),
      ),
    ]),
    ...offers.flatMap(({ index, offer }) =>
      fieldTexts(offer, ['id', 'name', 'description', 'gpu_type', 'os_options', 'extras'], ['offers', index]),
    ),
  ];
  return texts.flatMap(({ path, text, isKey }) => {
    const leaked = codes.find((code) => text.toLowerCase().includes(code.toLowerCase()));
    if (leaked === undefined) return [];
    const found = issue(path, `contains the datacenter code "${leaked}", which clients must never see`);
    return [isKey ? { ...found, params: { at: 'key' } } : found];
  });
}

/** The strings in the fields that clients see. */
function fieldTexts<T extends object>(
  value: T,
  fields: (keyof T & string)[],
  path: CatalogIssue['path'],
): FoundText[] {
  return fields.flatMap((field) => textsIn(value[field], [...path, field]));
}

interface FoundText {
  path: (string | number)[];
  text: string;
  isKey: boolean;
}

/** Every string in `value`, including the keys of objects. */
function textsIn(value: unknown, path: (string | number)[]): FoundText[] {
  if (typeof value === 'string') return [{ path, text: value, isKey: false }];
  if (Array.isArray(value)) return value.flatMap((item, index) => textsIn(item, [...path, index]));
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([key, item]) => [
    { path: [...path, key], text: key, isKey: true },
    ...textsIn(item, [...path, key]),
  ]);
}
