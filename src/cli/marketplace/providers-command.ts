import type { Command } from 'commander';
import { diagnoseProviders } from '../../compose/marketplace/diagnose-providers.ts';
import { Fatal } from '../../ports/errors.ts';
import { createLog } from '../../runtime/log.ts';
import { systemClock } from '../../runtime/system.ts';
import { printFindings } from '../print-findings.ts';
import { type OutputFlag, withOutput } from '../print-records.ts';
import { marketplaceActionCommand } from './action-commands.ts';
import { loadMarketplaceFor } from './database.ts';

/** Creates `berth marketplace providers`. `check` calls the providers, and needs no database. */
export function providersCommand(): Command {
  const providers = marketplaceActionCommand('providers');
  withOutput(providers.command('check'))
    .description('call each provider and report problems; exit code 1 if there are any')
    .option('--config <file>', 'marketplace.yaml; see examples/marketplace.yaml')
    .action((flags: OutputFlag, command: Command) => {
      const config = loadMarketplaceFor(command);
      if (config.providers.length === 0)
        throw new Fatal(
          'No provider is configured: give the marketplace.yaml that names them with --config.',
        );
      const ports = { env: process.env, clock: systemClock, log: createLog('silent') };
      return printFindings(diagnoseProviders(config, ports), flags);
    });
  return providers;
}
