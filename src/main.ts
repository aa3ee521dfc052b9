#!/usr/bin/env node
import { calledCommand, main } from './berth.ts';
import { printFailure, sentenceOfOldNode } from './cli/program.ts';
import { ignoreClosedPipes, printError } from './runtime/print.ts';
import { nameSourcesInStacks } from './runtime/sources.ts';

const called = calledCommand(process.argv.slice(2));
const oldNode = sentenceOfOldNode(process.versions.node, called);
if (oldNode === null) {
  nameSourcesInStacks();
  ignoreClosedPipes();
  // Node would print the error's message unescaped. The suite does its own cleanup first.
  if (called !== 'conformance')
    process.on('uncaughtException', (error) => {
      printFailure(error);
      process.exit(1);
    });
  await main(process.argv);
} else {
  printError(`berth: ${oldNode}\n`);
  process.exitCode = 1;
}
