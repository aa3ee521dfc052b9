import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { loadRequirements } from '../conformance/contract/requirements.ts';
import { matrixDocument } from '../conformance/mutants/matrix-document.ts';
import { mutants } from '../conformance/mutants/mutants.ts';
import { variations } from '../conformance/mutants/variations.ts';
import { readTestIds } from './check/test-ids.ts';
import { readClauses, toPage } from './marketplace/coverage.ts';

/**
 * `npm run generate -- coverage`: the pages that name every check and every clause with what proves it, in an ignored folder.
 */
const folder = join(import.meta.dirname, '../generated');
const pages = {
  'conformance-matrix.md': matrixDocument(mutants, variations, loadRequirements().rows),
  'marketplace-coverage.md': toPage(readClauses(), readTestIds()),
};

mkdirSync(folder, { recursive: true });
for (const [name, page] of Object.entries(pages)) {
  writeFileSync(join(folder, name), page);
  process.stdout.write(`generated/${name}: ${page.split('\n').length - 1} lines\n`);
}
