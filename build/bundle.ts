import { copyFileSync, cpSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { writeChunks } from './chunks.ts';
import { noticesOf } from './notices.ts';

// The first half of `npm run build`: writes dist/, which the package and the image run. What sources read beside
// themselves through `import.meta.url` stands beside the chunks: the guests' thread, migrations, the page of /docs,
// the style and the script of the console.

const DIST = 'dist';

rmSync(DIST, { recursive: true, force: true });
const chunks = await writeChunks(
  {
    main: 'src/main.ts',
    index: 'src/index.ts',
    client: 'src/client/index.ts',
    conformance: 'conformance/index.ts',
    sandbox: 'src/compose/sandbox/sandbox.ts',
    'sandbox-vitest': 'src/compose/sandbox/vitest.ts',
    'sandbox-testcontainers': 'src/compose/sandbox/testcontainers.ts',
    worker: 'src/drivers/simulator/guest/worker.ts',
  },
  DIST,
);
cpSync('src/store/migrations', join(DIST, 'migrations'), { recursive: true });
cpSync('src/operator-kit/console/assets', join(DIST, 'console'), { recursive: true });
const moduleFiles = chunks.flatMap(({ moduleIds }) => moduleIds);
writeFileSync(join(DIST, 'THIRD-PARTY-NOTICES.txt'), noticesOf([...moduleFiles, ...copySwaggerUi()]));

/** Copies the files that `src/http/api/api-docs.ts` serves; returns where they were. */
function copySwaggerUi(): string[] {
  const source = dirname(createRequire(import.meta.url).resolve('swagger-ui-dist/package.json'));
  const folder = join(DIST, 'swagger-ui');
  mkdirSync(folder);
  return ['swagger-ui.css', 'swagger-ui-bundle.js'].map((name) => {
    copyFileSync(join(source, name), join(folder, name));
    return join(source, name);
  });
}
