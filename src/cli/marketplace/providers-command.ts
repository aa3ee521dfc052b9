import { Command } from 'commander';
import { type OrchestratorClient, ProviderError } from '../../client/orchestrator-client.ts';
import { createClients } from '../../compose/marketplace/providers.ts';
import type { MarketplaceConfig } from '../../config/marketplace/schema.ts';
import { counted } from '../../contract/counted.ts';
import type { KnownProviders, ProviderRow } from '../../marketplace/operate/views/providers.ts';
import { publishedOffers } from '../../marketplace/providers/read-catalog.ts';
import { Fatal } from '../../ports/errors.ts';
import { Certificates } from '../../runtime/certificates.ts';
import { createLog } from '../../runtime/log.ts';
import { printLine } from '../../runtime/print.ts';
import { systemClock } from '../../runtime/system.ts';
import {
  isData,
  type ListFlags,
  type OutputFlag,
  printData,
  printRows,
  withList,
  withOutput,
} from '../print-records.ts';
import { type CommandDeps, loadMarketplaceFor, onMarketplaceDatabase } from './database.ts';
import { readProviders } from './status-command.ts';

export function providersCommand(): Command {
  const providers = new Command('providers');
  withList(withConfig(providers.command('ls')))
    .description('list the providers')
    .action((flags: ListFlags, command: Command) => {
      const { providers: entries } = loadProvidersFor(command);
      const bundled = isData(flags) ? null : 'comes with Berth';
      printRows(
        entries.map(({ id, base_url, profile = bundled, retired }) => ({ id, base_url, profile, retired })),
        flags,
      );
    });
  withOutput(withConfig(providers.command('check')))
    .description('call each provider and report problems; exit code 1 if there are any')
    .action(async (flags: OutputFlag, command: Command) => {
      const config = loadProvidersFor(command);
      const unread = new Map(config.providers.map(({ id }) => [id, [] as string[]]));
      const clients = createClients(config, {
        env: process.env,
        clock: systemClock,
        log: createLog('silent'),
        onProblem: (id, { call, message }) => unread.get(id)?.push(`${call}: ${message}`),
      });
      const results = await Promise.all(
        clients.map(async ({ profile: { id }, client }) => {
          const answer = await ask(client);
          const problems = [...(unread.get(id) ?? []), ...answer.leftOut];
          const isRight = answer.problem === null && problems.length === 0;
          return { id, isRight, sentence: toSentence(answer), problems };
        }),
      );
      if (isData(flags))
        printData(
          flags,
          results.map(({ isRight, ...result }) => ({ ...result, ok: isRight })),
        );
      else
        for (const { id, sentence, problems } of results)
          for (const line of [sentence, ...problems]) printLine(`${id}: ${line}`);
      if (results.some(({ isRight }) => !isRight)) process.exitCode = 1;
    });
  withOutput(
    onMarketplaceDatabase(providers.command('health'), async (deps, flags: OutputFlag & { ask?: true }) => {
      const rows = await readProviders(deps, flags.ask && (await askProviders(deps)));
      if (flags.ask && rows.some(({ state }) => state === 'failing')) process.exitCode = 1;
      if (isData(flags)) return printData(flags, rows);
      printRows(rows.map(toHealthRow), flags, {
        none: 'No provider is configured, and none is in the database.',
      });
      for (const { provider, problems } of rows)
        for (const problem of problems) printLine(`${provider}: ${problem}`);
      if (!flags.ask && rows.some(({ state }) => state === 'unknown'))
        printLine('No provider was called. With --ask, each is called now.');
    }),
  )
    .description(
      'show the deployments of each provider, its last confirmation and its failures of 24 hours; exit code 1 if a called provider fails',
    )
    .option('--ask', 'call each provider now, from here, and say whether it answers');
  return providers;
}

function toHealthRow(row: ProviderRow): object {
  const { provider, state, deploying, running, stopped, confirmed_until, made, failed, failures } = row;
  return {
    provider,
    state: state === 'unknown' ? 'not known' : state,
    deploying,
    running,
    stopped,
    confirmed_until,
    no_ssh_yet: row.waiting_for_ssh,
    held: row.losses_held,
    made,
    failed,
    why: failures.map(({ reason, count }) => `${reason} ${count}`),
  };
}

function withConfig(command: Command): Command {
  return command.option('--config <file>', 'marketplace.yaml; see examples/marketplace.yaml');
}

function loadProvidersFor(command: Command): MarketplaceConfig {
  const config = loadMarketplaceFor(command);
  if (config.providers.length === 0)
    throw new Fatal('No provider is configured: give the marketplace.yaml that names them with --config.');
  return config;
}

/** Calls each provider of the configuration once. */
async function askProviders({ config, clock }: CommandDeps): Promise<KnownProviders> {
  const certificates = new Certificates({ clock, log: createLog('silent') });
  const clients = createClients(config, { env: process.env, clock, log: createLog('silent'), certificates });
  const answers = await Promise.all(
    clients.map(async ({ profile: { id }, client }) => [id, await ask(client)] as const),
  );
  const endOf = new Map(certificates.list().map(({ name, endsAt }) => [name, endsAt]));
  return new Map(
    answers.map(([id, { offers, offersInStock, problem, leftOut }]) => [
      id,
      {
        catalogReadAt: problem === null ? clock.now() : null,
        certificateEndsAt: endOf.get(id) ?? null,
        offers,
        offersInStock,
        problems: problem === null ? leftOut : [problem],
      },
    ]),
  );
}

interface Answer {
  offers: number;
  offersInStock: number;
  /** Null if all calls succeeded. */
  problem: string | null;
  /** Why each offer that can be read is not sold. */
  leftOut: string[];
}

/**
 * Reads the provider's catalog and instances. The catalog alone does not prove the key: a provider may show it to any
 * key.
 */
async function ask(client: OrchestratorClient): Promise<Answer> {
  try {
    const offers = await client.listConfigurations();
    const available = await client.listAvailability();
    await client.listInstances();
    const leftOut: string[] = [];
    publishedOffers({ configurations: offers, available }, (problem) => leftOut.push(problem));
    return { offers: offers.length, offersInStock: available.length, problem: null, leftOut };
  } catch (error) {
    if (!(error instanceof ProviderError)) throw error;
    return { offers: 0, offersInStock: 0, problem: error.message, leftOut: [] };
  } finally {
    await client.close();
  }
}

function toSentence({ offers, offersInStock, problem }: Answer): string {
  return problem ?? `answers; ${counted(offers, 'offer')}, ${offersInStock} of them can be deployed now.`;
}
