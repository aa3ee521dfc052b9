import type { z } from 'zod';
import type { DriverDefinition, DriverOptions } from '../drivers/kit/driver-definition.ts';
import { driverNamed, drivers } from '../drivers/registry.ts';
import { DEFAULT_PLATFORM, platformsIn, wellFormedPartsOf } from '../orchestrator/catalog/catalog.ts';
import type { OfferFile, RegionFile } from '../orchestrator/catalog/catalog-schema.ts';
import { type PlainIssue, toPlainIssues } from './findings.ts';

/** The options of each platform by name, from either key of berth.yaml. */
export function platformsOf<Options>({
  platform,
  platforms = {},
}: {
  platform?: Options | undefined;
  platforms?: Readonly<Record<string, Options>> | undefined;
}): ReadonlyMap<string, Options> {
  return new Map(platform === undefined ? Object.entries(platforms) : [[DEFAULT_PLATFORM, platform]]);
}

/** The two keys of berth.yaml for platforms. */
export interface PlatformOptions {
  platform?: DriverOptions | undefined;
  platforms?: Readonly<Record<string, DriverOptions>> | undefined;
}

/** Makes the files in the drivers' options absolute. */
export function resolvePlatformFiles<Config extends PlatformOptions>(
  config: Config,
  absolute: (setting: string, path: string) => string,
): Config {
  const { platform, platforms } = config;
  return {
    ...config,
    ...(platform !== undefined && { platform: withFiles(platform, 'platform', absolute) }),
    ...(platforms !== undefined && {
      platforms: Object.fromEntries(
        Object.entries(platforms).map(([name, options]) => [
          name,
          withFiles(options, `platforms.${name}`, absolute),
        ]),
      ),
    }),
  };
}

function withFiles(
  options: DriverOptions,
  place: string,
  absolute: (setting: string, path: string) => string,
): DriverOptions {
  const keys: readonly string[] = drivers.find(({ name }) => name === options.driver)?.fileKeys ?? [];
  const files = Object.entries(options).filter(([key]) => keys.includes(key));
  return {
    ...options,
    ...Object.fromEntries(files.map(([key, path]) => [key, absolute(`${place}.${key}`, path)])),
  };
}

/** The platforms that a catalog is checked against, each with the schema of its driver's `machine:` options. */
export type SellingPlatforms = ReadonlyMap<string, Pick<DriverDefinition, 'name' | 'offerSchema'>>;

/** The drivers of the platforms in a configuration. */
export function sellingPlatforms(
  config: Parameters<typeof platformsOf<{ driver: string }>>[0],
  among?: readonly DriverDefinition[],
): SellingPlatforms {
  return new Map(
    [...platformsOf(config)].map(([name, { driver }]) => [name, driverNamed(driver, among)] as const),
  );
}

/** Issues of a catalog file that does not fit the platforms of its machines and volumes. */
export function platformIssues(raw: unknown, platforms: SellingPlatforms): PlainIssue[] {
  const { offers, regions } = wellFormedPartsOf(raw);
  const sold = offers.map(({ offer }) => offer);
  return [
    ...offers.flatMap(({ index, offer }) => offerIssues(offer, ['offers', index], platforms)),
    ...regions.flatMap(({ token, region }) => volumeTypeIssues(token, region, sold, platforms)),
  ];
}

type Path = (string | number)[];

function offerIssues(
  { platform, machine }: OfferFile,
  path: Path,
  platforms: SellingPlatforms,
): PlainIssue[] {
  const issue = nameIssue(
    platform,
    'the configuration has several platforms',
    [...path, 'platform'],
    platforms,
  );
  if (issue !== undefined) return [issue];
  const [usual] = platforms.keys();
  const selling = platforms.get(platform ?? usual ?? '');
  return selling === undefined ? [] : machineIssues(selling, machine, [...path, 'machine']);
}

function nameIssue(
  name: string | undefined,
  whyNeeded: string,
  path: Path,
  platforms: SellingPlatforms,
): PlainIssue | undefined {
  const names = [...platforms.keys()].join(', ');
  if (name !== undefined && !platforms.has(name))
    return { path, message: `unknown platform; expected one of: ${names}`, at: 'value' };
  if (name === undefined && platforms.size > 1)
    return { path, message: `missing: ${whyNeeded}; expected one of: ${names}`, at: 'value' };
  return undefined;
}

function machineIssues(
  { name, offerSchema }: Pick<DriverDefinition, 'name' | 'offerSchema'>,
  machine: OfferFile['machine'],
  path: Path,
): PlainIssue[] {
  if (offerSchema === undefined)
    return Object.keys(machine).map((key) => ({
      path: [...path, key],
      message: `the driver ${name} has no settings under machine; remove it`,
      at: 'key',
    }));
  const issues: readonly z.core.$ZodIssue[] = offerSchema.safeParse(machine).error?.issues ?? [];
  return toPlainIssues(machine, issues).map((issue) => ({ ...issue, path: [...path, ...issue.path] }));
}

/** The volumes of a region are on the platform of its offers, if these share one. */
function volumeTypeIssues(
  token: string,
  { volume_types: types }: RegionFile,
  offers: readonly OfferFile[],
  platforms: SellingPlatforms,
): PlainIssue[] {
  const [usual = DEFAULT_PLATFORM] = platforms.keys();
  const isClear = platformsIn(token, offers, usual).size === 1;
  return types.flatMap(({ platform }, index) => {
    const path = ['regions', token, 'volume_types', index, 'platform'];
    if (platform === undefined && isClear) return [];
    return nameIssue(platform, 'the offers of the region are on several platforms', path, platforms) ?? [];
  });
}
