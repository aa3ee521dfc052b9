import { Command } from 'commander';
import { type OrchestratorClient, ProviderError } from '../../client/orchestrator-client.ts';
import { createClients } from '../../compose/providers.ts';
import type { MarketplaceConfig } from '../../config/marketplace/schema.ts';
import { counted } from '../../contract/counted.ts';
import type { ProviderRow } from '../../marketplace/operate/views/providers.ts';
import { Fatal } from '../../ports/errors.ts';
import { createLog } from '../../runtime/log.ts';
import { printLine } from '../../runtime/print.ts';
import { systemClock } from '../../runtime/system.ts';
import {
  type Column,
  fieldColumns,
  type JsonFlag,
  printJson,
  printRecords,
  withJson,
} from '../print-records.ts';
import { loadMarketplaceFor, onMarketplaceDatabase, withAllowPrivate } from './database.ts';
import { readProviders } from './status-command.ts';

/** `berth marketplace providers` */
export function providersCommand(): Command {
  const providers = new Command('providers');
  withJson(withConfig(providers.command('list')))
    .description('list the providers')
    .action((flags: JsonFlag, command: Command) => {
      const { providers: entries } = loadProvidersFor(command);
      printRecords(
        entries,
        [
          { head: 'ID', key: 'id', value: ({ id }) => id },
          { head: 'BASE URL', key: 'base_url', value: ({ base_url }) => base_url },
          {
            head: 'PROFILE',
            key: 'profile',
            value: ({ profile }) => profile ?? null,
            text: ({ id, profile }) => profile ?? `${id}, which comes with Berth`,
          },
        ],
        flags,
      );
    });
  withJson(withConfig(providers.command('check')))
    .description('call each provider and say what is wrong; exit code 1 if anything is')
    .action(async ({ json }: JsonFlag, command: Command) => {
      const config = loadProvidersFor(command);
      const parts = { env: process.env, clock: systemClock, log: createLog('silent') };
      const results = await Promise.all(
        createClients(config, parts).map(async ({ profile: { id }, client }) => ({
          id,
          ...(await check(client).finally(() => client.close())),
        })),
      );
      if (json) printJson(results.map(({ id, isRight, sentence }) => ({ id, ok: isRight, sentence })));
      else for (const { id, sentence } of results) printLine(`${id}: ${sentence}`);
      if (results.some(({ isRight }) => !isRight)) process.exitCode = 1;
    });
  withJson(
    onMarketplaceDatabase(providers.command('health'), async (deps, flags: JsonFlag) => {
      const rows = await readProviders(deps);
      if (flags.json) printJson(rows);
      else printRecords(rows, healthColumns, {}, 'No provider is configured, and no row names one.');
    }),
  ).description(
    'what each provider runs, until when it confirmed that, and what failed there in 24 hours; it calls none',
  );
  return providers;
}

const healthColumns: readonly Column<ProviderRow>[] = [
  ...fieldColumns<ProviderRow>({
    PROVIDER: 'provider',
    STATE: 'state',
    DEPLOYING: 'deploying',
    RUNNING: 'running',
    STOPPED: 'stopped',
    'CONFIRMED UNTIL': 'confirmed_until',
    'NO SSH YET': 'waiting_for_ssh',
    HELD: 'losses_held',
    MADE: 'made',
    FAILED: 'failed',
  }),
  {
    head: 'WHY',
    key: 'failures',
    value: ({ failures }) => failures.map(({ reason, count }) => `${reason} ${count}`).join(', '),
  },
];

function withConfig(command: Command): Command {
  return withAllowPrivate(
    command.option('--config <file>', 'marketplace.yaml; see marketplace.example.yaml'),
  );
}

function loadProvidersFor(command: Command): MarketplaceConfig {
  const config = loadMarketplaceFor(command);
  if (config.providers.length === 0)
    throw new Fatal('No provider is configured: give the marketplace.yaml that names them with --config.');
  return config;
}

async function check(client: OrchestratorClient): Promise<{ isRight: boolean; sentence: string }> {
  try {
    const offers = await client.listConfigurations();
    const available = await client.listAvailability();
    const sentence = `answers; ${counted(offers.length, 'offer')}, ${available.length} of them can be deployed now.`;
    return { isRight: true, sentence };
  } catch (error) {
    if (!(error instanceof ProviderError)) throw error;
    return { isRight: false, sentence: error.message };
  }
}
