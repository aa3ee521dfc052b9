import { conformance } from '../../conformance/cli.ts';

/** `berth conformance …` without the server's code, which takes longer to load than it does. */
process.exitCode = await conformance(process.argv.slice(2));
