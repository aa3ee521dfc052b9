import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { PARSED_ONCE } from '../../contract/parse-once.ts';
import { type ProviderProfile, providerProfileSchema } from '../../marketplace/providers/profile.ts';
import { ConfigError, toFindings, toPlainIssues } from '../findings.ts';
import { packageRoot } from '../package-root.ts';
import { readYamlFile } from '../yaml-file.ts';

/** The ids of the bundled profiles. */
export function bundledProfileIds(): string[] {
  return readdirSync(bundledFolder())
    .filter((name) => name.endsWith('.yaml'))
    .map((name) => name.replace(/\.yaml$/, ''))
    .sort();
}

/** The file of the bundled profile, or undefined if there is none with that id. */
export function bundledProfileFile(id: string): string | undefined {
  const file = join(bundledFolder(), `${id}.yaml`);
  return existsSync(file) ? file : undefined;
}

/** @throws {ConfigError} with every finding, each at its line */
export function loadProfile(file: string): ProviderProfile {
  const yaml = readYamlFile(file);
  const parsed = providerProfileSchema.safeParse(yaml.value, PARSED_ONCE);
  if (!parsed.success)
    throw new ConfigError(toFindings(yaml, toPlainIssues(yaml.value, parsed.error.issues)));
  return parsed.data;
}

function bundledFolder(): string {
  return join(packageRoot(), 'fixtures', 'providers');
}
