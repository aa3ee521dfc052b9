import { parse } from 'yaml';
import { loadCatalog } from '../../src/config/load.ts';
import { createLog } from '../../src/runtime/log.ts';

// Logs an error that Berth throws, and one that a library throws, whose message quotes what it was given.
const log = createLog('info');
for (const fail of [() => loadCatalog('missing.yaml'), () => parse('password: hush: hush')])
  try {
    fail();
  } catch (error) {
    log.error({ err: error }, 'it failed');
  }
