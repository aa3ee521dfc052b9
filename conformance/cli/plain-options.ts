import { type Command, InvalidArgumentError, Option } from 'commander';

/** The options that say what a run sends, and when, which a plain run does not choose. */
const OF_USUAL_RUNS = [
  'only',
  'rerunFailed',
  'race',
  'observeS',
  'restartCommand',
  'exhaustive',
  'secondApiKeyFile',
  'otherAccountKeyFile',
  'keepOnFailure',
];

export function withPlain(command: Command): Command {
  return command
    .addOption(
      new Option(
        '--plain',
        'send what an ordinary marketplace sends, so that a target cannot recognise the suite; what no client sends is not tested',
      ).conflicts(OF_USUAL_RUNS),
    )
    .option(
      '--installation <id>',
      'with --plain: the eight hex digits in the names of your marketplace; default: drawn',
      installationOf,
    );
}

function installationOf(text: string): string {
  if (/^[0-9a-f]{8}$/.test(text)) return text;
  throw new InvalidArgumentError('Give eight hex digits, as they follow bm- in the names of the instances');
}
