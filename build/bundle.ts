import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { digestOfYaml, PARSED_YAML, readYamlFile } from '../src/config/yaml-file.ts';
import { emptyDatabaseFile } from '../src/store/migrations.ts';
import { migratedDatabase } from '../src/store/sqlite/memory.ts';
import { writeChunks } from './chunks.ts';
import { noticesOf } from './notices.ts';

// The first half of `npm run build`: writes dist/, which the package and the image run. What sources read beside
// themselves through `import.meta.url` stands beside the chunks: migrations, the style and the
// script of the console.
//
//     node build/bundle.ts [FOLDER [NAME=SOURCE…]]
//
// Tests name another folder below the root, and programs of their own that are written with it.

const [DIST = 'dist', ...programs] = process.argv.slice(2);

rmSync(DIST, { recursive: true, force: true });
const chunks = await writeChunks(
  {
    main: 'src/main.ts',
    client: 'src/client/index.ts',
    conformance: 'conformance/index.ts',
    sandbox: 'src/compose/sandbox/sandbox.ts',
    'sandbox-vitest': 'src/compose/sandbox/vitest.ts',
    ...Object.fromEntries(programs.map((program) => program.split('='))),
  },
  DIST,
);
cpSync('src/store/migrations', join(DIST, 'migrations'), { recursive: true });
for (const database of ['sqlite', 'marketplace-sqlite'] as const)
  writeFileSync(
    join(DIST, 'migrations', basename(emptyDatabaseFile(database).pathname)),
    gzipSync(migratedDatabase(database)),
  );
cpSync('src/operator-kit/console/assets', join(DIST, 'console'), { recursive: true });
parseYamlOf('fixtures/catalogs', 'fixtures/providers');
const moduleFiles = chunks.flatMap(({ moduleIds }) => moduleIds);
writeFileSync(join(DIST, 'THIRD-PARTY-NOTICES.txt'), noticesOf(moduleFiles));

/** Parses bundled YAML, so that a start does not: see `src/config/yaml-file.ts`. */
function parseYamlOf(...folders: string[]): void {
  mkdirSync(join(DIST, PARSED_YAML));
  for (const file of folders.flatMap((folder) => readdirSync(folder).map((name) => join(folder, name)))) {
    const { value } = readYamlFile(file);
    writeFileSync(join(DIST, PARSED_YAML, digestOfYaml(readFileSync(file))), JSON.stringify(value));
  }
}
