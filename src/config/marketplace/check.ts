import { dirname, resolve } from 'node:path';
import { collectFindings, type Finding, toFindings, toPlainIssues } from '../findings.ts';
import { tlsFindings } from '../tls-findings.ts';
import type { YamlFile } from '../yaml-file.ts';
import { loadProfile } from './load-profile.ts';
import { marketplaceConfigSchema } from './schema.ts';

/** Whether a file is a marketplace's: an orchestrator has no providers. */
export function isMarketplaceFile({ value }: YamlFile): boolean {
  return 'providers' in value;
}

/** Everything that is wrong with a marketplace's file and with the profiles that it names. */
export function marketplaceFindings(yaml: YamlFile): Finding[] {
  const parsed = marketplaceConfigSchema.safeParse(yaml.value);
  if (!parsed.success) return toFindings(yaml, toPlainIssues(yaml.value, parsed.error.issues));
  const profiles = parsed.data.providers.flatMap(({ profile }) => profile ?? []);
  return [
    ...tlsFindings(yaml),
    ...profiles.flatMap((profile) =>
      collectFindings(() => {
        loadProfile(resolve(dirname(yaml.file), profile));
        return [];
      }),
    ),
  ];
}
