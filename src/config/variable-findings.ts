import { drivers } from '../drivers/registry.ts';
import { type Finding, type IssuePath, type PlainIssue, toFindings, type YamlFile } from './findings.ts';
import { isMarketplaceFile } from './marketplace/load.ts';
import { platformsOf } from './platforms.ts';
import type { ConfigFile } from './schema.ts';
import type { Environment } from './settings.ts';

/**
 * Finds environment variables that are not set here. A server does not start without them. The file can still be valid:
 * it may be meant for another machine.
 */
export function variableFindings(yaml: YamlFile, env: Environment): Finding[] {
  return toFindings(yaml, isMarketplaceFile(yaml) ? ofMarketplace(yaml, env) : ofPlatforms(yaml, env));
}

const secretKeys = ['api_key_env', 'password_env'] as const;

type Secrets = Partial<Record<(typeof secretKeys)[number], string>>;

function ofMarketplace({ value }: YamlFile, env: Environment): PlainIssue[] {
  const { providers = [], mail } = value as { providers?: Secrets[]; mail?: Secrets };
  const places: [IssuePath, Secrets][] = providers.map((entry, index) => [['providers', index], entry]);
  if (mail !== undefined) places.push([['mail'], mail]);
  return places.flatMap(([path, entry]) =>
    secretKeys.flatMap((key) => {
      const name = entry[key];
      // An empty secret is refused like a missing one.
      const isMissing = name !== undefined && (env[name] || (env[`${name}_FILE`] ?? '')).trim() === '';
      return isMissing ? [toIssue([...path, key], name, 'berth marketplace')] : [];
    }),
  );
}

function ofPlatforms({ value }: YamlFile, env: Environment): PlainIssue[] {
  const config = value as Pick<ConfigFile, 'platform' | 'platforms'>;
  return [...platformsOf(config)].flatMap(([platform, options]) => {
    const path = config.platform === undefined ? ['platforms', platform] : ['platform'];
    const { variableKeys = [] } = drivers.find(({ name }) => name === options.driver) ?? {};
    return variableKeys.flatMap((key) => {
      const names = (options as unknown as Record<string, readonly string[] | undefined>)[key] ?? [];
      return names.flatMap((name, index) =>
        env[name] === undefined ? [toIssue([...path, key, index], name, 'berth serve')] : [],
      );
    });
  });
}

function toIssue(path: IssuePath, name: string, command: string): PlainIssue {
  const message = `the environment variable ${name} is not set here; \`${command}\` does not start without it`;
  return { path, message, at: 'value' };
}
