import { dirname, resolve } from 'node:path';
import { collectFindings, type Finding, toFindings, toPlainIssues, type YamlFile } from '../findings.ts';
import { createPathResolver, parseConfig, resolveServerPaths } from '../parse-config.ts';
import { type ConfigFlags, type Environment, readOverrides } from '../settings.ts';
import { readYamlFile } from '../yaml-file.ts';
import { loadProfile } from './load-profile.ts';
import { type MarketplaceConfig, marketplaceConfigSchema } from './schema.ts';

export interface MarketplaceLoadOptions {
  /** `--config`. Default: `BERTH_MARKETPLACE_CONFIG`, then the built-in defaults (no provider). */
  file?: string | undefined;
  flags: ConfigFlags;
  env: Environment;
}

const PREFIX = 'BERTH_MARKETPLACE_';

/** Like `loadConfig`. @throws {ConfigError} with every finding */
export function loadMarketplaceConfig({ file, flags, env }: MarketplaceLoadOptions): MarketplaceConfig {
  const path = file ?? (env[`${PREFIX}CONFIG`] || undefined);
  const yaml = path === undefined ? undefined : readYamlFile(path);
  const { config, sources } = parseConfig(marketplaceConfigSchema, yaml, readOverrides(flags, env, PREFIX));
  const inFile = createPathResolver(yaml?.file, new Map([['file', 'file']]));
  return {
    ...resolveServerPaths(config, createPathResolver(yaml?.file, sources)),
    providers: config.providers.map((entry) =>
      entry.profile === undefined ? entry : { ...entry, profile: inFile('file', entry.profile) },
    ),
  };
}

/** Whether a file configures a marketplace. An orchestrator's file has no providers. */
export function isMarketplaceFile({ value }: YamlFile): boolean {
  return 'providers' in value;
}

/** Returns all problems of a marketplace's file and of its profiles. */
export function marketplaceFindings(yaml: YamlFile): Finding[] {
  const parsed = marketplaceConfigSchema.safeParse(yaml.value);
  if (!parsed.success) return toFindings(yaml, toPlainIssues(yaml.value, parsed.error.issues));
  const profiles = parsed.data.providers.flatMap(({ profile }) => profile ?? []);
  return profiles.flatMap((profile) =>
    collectFindings(() => {
      loadProfile(resolve(dirname(yaml.file), profile));
      return [];
    }),
  );
}
