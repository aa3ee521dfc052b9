#!/usr/bin/env node
import { Command, CommanderError } from 'commander';
import { accountsCommand } from './cli/accounts-command.ts';
import { backupCommand } from './cli/backup-command.ts';
import { checkConfigCommand } from './cli/check-config-command.ts';
import { createProgram } from './cli/create-program.ts';
import { sentenceOf } from './cli/fatal.ts';
import { keysCommand } from './cli/keys-command.ts';
import { lossesCommand } from './cli/losses-command.ts';
import { marketplaceDescription } from './cli/marketplace/description.ts';
import { sentenceOfOldNode } from './cli/old-node.ts';
import type { ServeParts } from './cli/serve.ts';
import { serveCommand } from './cli/serve-command.ts';
import { simulatorCommand } from './cli/simulator-command.ts';

/** Runs the command line. A failure is a sentence on standard error and exit code 1. */
export async function main(argv: readonly string[], parts: ServeParts = {}): Promise<void> {
  if (argv[2] === 'conformance') {
    // A program of its own: it reads its arguments, and the server does not carry it along.
    const { conformance } = await import('../conformance/cli.ts');
    process.exitCode = await conformance(argv.slice(3));
    return;
  }
  const program = createProgram([
    serveCommand(parts),
    keysCommand(),
    accountsCommand(),
    lossesCommand(),
    backupCommand(),
    checkConfigCommand(),
    simulatorCommand(),
    await marketplace(argv),
    new Command('conformance').description('test a provider orchestrator, in whatever language'),
  ]);
  try {
    await program.parseAsync(argv);
  } catch (error) {
    if (error instanceof CommanderError) {
      process.exitCode = error.exitCode;
      return;
    }
    const fault = `a fault of the program: ${error instanceof Error ? error.stack : error}`;
    process.stderr.write(`berth: ${sentenceOf(error) ?? fault}\n`);
    process.exitCode = 1;
  }
}

/** All of it where it is asked for; else its name: a server of the other kind does not carry it along. */
async function marketplace(argv: readonly string[]): Promise<Command> {
  if (!argv.includes('marketplace')) return new Command('marketplace').description(marketplaceDescription);
  const { marketplaceCommand } = await import('./cli/marketplace/marketplace-command.ts');
  return marketplaceCommand();
}

const oldNode = sentenceOfOldNode(process.versions.node);
if (oldNode !== null) {
  process.stderr.write(`berth: ${oldNode}\n`);
  process.exitCode = 1;
} else if (import.meta.main) await main(process.argv);
