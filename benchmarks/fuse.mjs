// Times the project search that Fuse.js makes, and a plain filter, on the same files and queries.
// node fuse.mjs FOLDER_OF_MODULES TASK.json -> {"exact": [ms, ...], "fuzzy": [ms, ...]}

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const [modules, task] = process.argv.slice(2);
const Fuse = createRequire(`${modules}/`)("fuse.js");
const { files, exact, fuzzy } = JSON.parse(readFileSync(task, "utf8"));
const keys = ["title", "content", "synopsis"];
const fuse = new Fuse(files, {
  keys,
  threshold: 0.3,
  includeScore: true,
  includeMatches: true,
  minMatchCharLength: 2,
});

const searchExactly = (query) => {
  const wanted = query.toLowerCase();
  return files
    .filter((file) => keys.some((key) => file[key].toLowerCase().includes(wanted)))
    .slice(0, 20);
};
const searchFuzzily = (query) => fuse.search(query).slice(0, 20);

const timed = (search, queries) => {
  search(queries[0]); // not measured: the first of everything
  return queries.map((query) => {
    const began = performance.now();
    search(query);
    return performance.now() - began;
  });
};

console.log(
  JSON.stringify({ exact: timed(searchExactly, exact), fuzzy: timed(searchFuzzily, fuzzy) }),
);
