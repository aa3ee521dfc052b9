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
  const { regions, offers, knownTokens } = parts;
  return [
    ...regions.flatMap(({ token, region }) => under(['regions', token], regionIssues(region))),
    ...duplicateIssues(
      regions.map(({ token, region }) => [region.datacenter, ['regions', token, 'datacenter']]),
    ),
    ...duplicateIssues(offers.map(({ index, offer }) => [offer.id, ['offers', index, 'id']])),
    ...gpuSpellingIssues(offers),
    ...offers.flatMap(({ index, offer }) => under(['offers', index], offerIssues(offer, knownTokens))),
    ...leakIssues(parts),
  ];
}

type Path = CatalogIssue['path'];

/** The issue, if `isWrong`. */
function when(isWrong: boolean, path: Path, message: string): CatalogIssue[] {
  return isWrong ? [{ code: 'custom', path, message }] : [];
}

function under(path: Path, issues: readonly CatalogIssue[]): CatalogIssue[] {
  return issues.map((issue) => ({ ...issue, path: [...path, ...issue.path] }));
}

const ofKey = (issue: CatalogIssue): CatalogIssue => ({ ...issue, params: { at: 'key' } });

function duplicateIssues(entries: readonly (readonly [value: string, path: Path])[]): CatalogIssue[] {
  const seen = new Set<string>();
  return entries.flatMap(([value, path]) => {
    const isKnown = seen.has(value);
    seen.add(value);
    return when(isKnown, path, `expected a unique value, but "${value}" is already used`);
  });
}

function regionIssues({ volume_types: types, storage_capacity_gb: storage }: RegionFile): CatalogIssue[] {
  return [
    ...duplicateIssues(types.map(({ name }, index) => [name, ['volume_types', index, 'name']])),
    ...types.flatMap(({ min_size_gb: min, max_size_gb: max }, index) =>
      when(min > max, ['volume_types', index, 'min_size_gb'], `expected at most max_size_gb (${max})`),
    ),
    ...when(
      storage !== undefined && types.length === 0,
      ['storage_capacity_gb'],
      'expected volume_types as well: the region sells no volumes',
    ),
  ];
}

/** O: Configuration, gpu_type: "consistent across offers". */
function gpuSpellingIssues(offers: Parts['offers']): CatalogIssue[] {
  const spellings = new Map<string, string>();
  return offers.flatMap(({ index, offer: { gpu_type: type } }) => {
    if (type === undefined) return [];
    const normalized = type.toLowerCase().replace(/[^a-z0-9]/g, '');
    const first = spellings.get(normalized) ?? type;
    spellings.set(normalized, first);
    const message = `expected the same spelling as before: "${first}"`;
    return when(first !== type, ['offers', index, 'gpu_type'], message);
  });
}

function offerIssues(offer: OfferFile, knownTokens: ReadonlySet<string>): CatalogIssue[] {
  return [
    ...gpuIssues(offer),
    ...priceIssues(offer),
    ...rootDiskIssues(offer),
    ...duplicateIssues(offer.os_options.map((value, index) => [value, ['os_options', index]])),
    ...capacityIssues(offer, knownTokens),
    ...extrasIssues(offer),
  ];
}

function gpuIssues({ gpu_count = 0, gpu_type, gpu_memory_gb }: OfferFile): CatalogIssue[] {
  const isWithout = gpu_count === 0;
  const message = 'expected a gpu_count above 0 as well';
  return [
    ...when(
      !isWithout && gpu_type === undefined,
      ['gpu_type'],
      'missing: an offer with gpu_count needs a gpu_type',
    ),
    ...when(isWithout && gpu_type !== undefined, ['gpu_type'], message),
    ...when(isWithout && gpu_memory_gb !== undefined, ['gpu_memory_gb'], message),
  ];
}

function priceIssues({
  instance_type: type,
  price_per_hour: price,
  spot_price_per_hour: spot,
  stopped_price_per_hour: stopped = 0,
}: OfferFile): CatalogIssue[] {
  const isSpot = type === 'SPOT';
  const running = spot ?? price;
  return [
    ...when(
      !isSpot && spot !== undefined,
      ['spot_price_per_hour'],
      `only an offer of instance_type SPOT is sold at a spot price, this one is ${type}`,
    ),
    ...when(
      isSpot && spot === undefined,
      ['spot_price_per_hour'],
      'missing: an offer of instance_type SPOT needs a spot price',
    ),
    ...when(isSpot && running > price, ['spot_price_per_hour'], `expected at most price_per_hour (${price})`),
    ...when(
      stopped > running,
      ['stopped_price_per_hour'],
      `expected at most its price while running (${running})`,
    ),
  ];
}

function rootDiskIssues({ root_disk: disk, storage_gb }: OfferFile): CatalogIssue[] {
  if (disk === undefined) return [];
  const { min_gb: min, max_gb: max } = disk;
  if (min > max) return when(true, ['root_disk', 'min_gb'], `expected at most max_gb (${max})`);
  return when(
    storage_gb < min || storage_gb > max,
    ['root_disk'],
    `expected a range that includes storage_gb (${storage_gb}), the size when a create asks for none`,
  );
}

function capacityIssues({ capacity }: OfferFile, knownTokens: ReadonlySet<string>): CatalogIssue[] {
  const tokens = Object.keys(capacity);
  const unknown = `unknown region; expected one of: ${[...knownTokens].join(', ')}`;
  return [
    ...when(
      tokens.length === 0,
      ['capacity'],
      'expected at least one region; write 0 units where the offer is sold out',
    ),
    ...tokens.flatMap((token) => when(!knownTokens.has(token), ['capacity', token], unknown).map(ofKey)),
  ];
}

/** Refuses `extras.berth`: Berth writes its own features there. */
function extrasIssues({ extras = {} }: OfferFile): CatalogIssue[] {
  return when(
    Object.hasOwn(extras, 'berth'),
    ['extras', 'berth'],
    'is set by Berth: use restartable, stopped_price_per_hour and minimum_reservation_minutes of the offer instead',
  ).map(ofKey);
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
    const message = `contains the datacenter code "${leaked}", which clients must never see`;
    const found = when(leaked !== undefined, path, message);
    return isKey ? found.map(ofKey) : found;
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
