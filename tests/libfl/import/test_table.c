/* Tables with texts, categories, missing values and values to be predicted. */
#include "tests/lib/suites.h"
#include "tests/libfl/import/import_fixture.h"

static struct import_fixture f;

static void setup(void)
{
    fixture_up(&f);
}

static void teardown(void)
{
    fixture_down(&f);
}

static void table(const char *text)
{
    t_text(f.dir, "train.csv", text);
}

static void values_are(const struct fl_dataset *ds, const float *x, size_t n, size_t dim)
{
    ck_assert_uint_eq(ds->n, n);
    ck_assert_uint_eq(ds->dim, dim);
    ck_assert_mem_eq(ds->x, x, n * dim * sizeof(*x));
}

TEST_CASE("tables", setup, teardown);

TEST(categories_become_one_hot_features_in_the_order_of_their_texts)
{
    table("age,job,kind\n30,smith,b\n40,nurse,a\n");
    fixture_read(&f);
    values_are(f.got.train, (float[]){30, 0, 1, 40, 1, 0}, 2, 3);
    ck_assert_mem_eq(f.got.train->y, ((int32_t[]){1, 0}), 2 * sizeof(int32_t));
    ck_assert_str_eq(f.got.schema.labels.text[1], "b");
    ck_assert_str_eq(f.got.schema.columns[1].values.text[0], "nurse");
    f.conf.one_hot = false;
    fixture_read(&f);
    values_are(f.got.train, (float[]){30, 1, 40, 0}, 2, 2);
}

TEST(numbers_can_be_categories_and_columns_can_be_dropped)
{
    f.conf.category = "zip";
    f.conf.drop = "id,note";
    table("id,zip,note,kind\n1,30,x,0\n2,20,y,1\n");
    fixture_read(&f);
    values_are(f.got.train, (float[]){0, 1, 1, 0}, 2, 2);
    f.conf.drop = "name";
    fixture_refused(&f, FL_ERANGE, "train.csv",
                    ": the option drop names the column 'name', expected one of "
                    "its 4 columns, 'id' to 'kind'");
}

TEST(without_a_heading_columns_are_numbered)
{
    f.conf.target = "1";
    table("2,red,5\n0,blue,6\n");
    fixture_read(&f);
    values_are(f.got.train, (float[]){0, 1, 5, 1, 0, 6}, 2, 3);
    ck_assert(f.got.train->y[0] == 2 && f.got.train->classes == 3);
}

TEST(quotes_enclose_commas_line_ends_and_quotes)
{
    table("a,job,kind\n1,\"nurse, head\",0\n2,\"a \"\"b\"\"\nc\",1\n");
    fixture_read(&f);
    ck_assert_str_eq(f.got.schema.columns[1].values.text[0], "a \"b\"\nc");
    ck_assert_str_eq(f.got.schema.columns[1].values.text[1], "nurse, head");
    table("a,job,kind\n1,\"nurse,0\n2,x,1\n");
    fixture_refused(&f, FL_EFORMAT, "train.csv",
                    ", line 2: expected a closing quote for the one opened here");
}

TEST(a_regression_has_values_in_place_of_classes)
{
    f.conf.regression = true;
    f.conf.target = "price,rent";
    table("rooms,price,rent\n3,100.5,7\n4,-2e3,8\n");
    fixture_read(&f);
    values_are(f.got.train, (float[]){3, 4}, 2, 1);
    ck_assert(f.got.train->n_targets == 2 && f.got.train->classes == 1);
    ck_assert_mem_eq(f.got.train->target, ((float[]){100.5F, 7, -2000, 8}), 4 * sizeof(float));
}

TEST(a_missing_value_is_refused_with_its_place)
{
    table("age,job,kind\n30,smith,0\n,smith,0\n");
    fixture_refused(&f, FL_EFORMAT, "train.csv",
                    ", line 3, column 1 (age): expected a value, found ''");
    table("age,job,kind\n30,smith,0\n3,?,0\n");
    fixture_refused(&f, FL_EFORMAT, "train.csv", ", line 3, column 2 (job): expected a value");
}

TEST(a_missing_number_becomes_the_mean_of_the_train_part)
{
    f.conf.missing = FL_MISSING_MEAN;
    table("age,job,kind\n30,smith,0\nNA,?,1\n50,nurse,1\n");
    t_text(f.dir, "test.csv", "age,job,kind\n,smith,0\n90,nurse,0\n");
    fixture_read(&f);
    values_are(f.got.train, (float[]){30, 0, 1, 40, 0, 0, 50, 1, 0}, 3, 3);
    values_are(f.got.test, (float[]){40, 0, 1, 90, 1, 0}, 2, 3);
    f.conf.one_hot = false;
    fixture_read(&f);
    values_are(f.got.train, (float[]){30, 1, 40, 2, 50, 0}, 3, 2);
    table("age,kind\n30,0\n31,\n");
    ck_assert_int_eq(fl_fs_remove(t_path((char[T_PATH]){0}, f.dir, "test.csv")), FL_OK);
    fixture_refused(&f, FL_EFORMAT, "train.csv",
                    ", line 3, column 2 (kind): expected a value to be predicted, found ''");
}

TEST(rows_with_missing_values_can_be_skipped)
{
    f.conf.missing = FL_MISSING_SKIP;
    table("age,kind\n30,0\n,0\n31,NA\n50,1\n");
    fixture_read(&f);
    values_are(f.got.train, (float[]){30, 50}, 2, 1);
    ck_assert_uint_eq(f.got.skipped, 2);
    table("age,kind\n,0\n");
    fixture_refused(&f, FL_EFORMAT, "train.csv", ": holds no sample without a missing value");
}

static const struct {
    int code;
    const char *text, *message;
} bad_tables[] = {
    {FL_EFORMAT, "a,b,c\n1,2,0\n1,2\n",
     ", line 3: expected 3 columns as in the first line, found 2"},
    {FL_EFORMAT, "a,b,c\n1,2,0\n1,2,0,4\n", ", line 3: expected 3 columns"},
    {FL_EFORMAT, "a,b,c\n1,2,0\n1,2o,1\n",
     ", line 3, column 2 (b): expected a number as in line 2, found '2o'; the option category "
     "names "
     "columns"},
    {FL_EFORMAT, "a,c\n1,0\n2,yes\n",
     ", line 3, column 2 (c): expected a class number as in the rows before, found 'yes'"},
    {FL_ERANGE, "a,c\n1,0.5\n", ", line 2, column 2 (c): expected a class number from 0 to 65535"},
    {FL_ERANGE, "a,c\n1,-1\n", ", line 2, column 2 (c): expected a class number"},
    {FL_ENUMERIC, "a,c\n1,0\n1e99,0\n", ", line 3, column 1 (a): expected a finite number"},
    {FL_EFORMAT, "a,c\n1,0\ninf,0\n",
     ", line 3, column 1 (a): expected a number as in line 2, found 'inf'"},
    {FL_EFORMAT, "a,a,c\n1,1,0\n", ", line 1, column 2: the heading 'a' is that of column 1 too"},
    {FL_EFORMAT, "a\n1\n", ", line 1: expected at least one feature and a label"},
    {FL_EFORMAT, "a,b\n", ": holds no sample"},
};

TEST_EACH(a_bad_table_is_refused_with_its_place, sizeof(bad_tables) / sizeof(*bad_tables))
{
    table(bad_tables[_i].text);
    fixture_refused(&f, bad_tables[_i].code, "train.csv", bad_tables[_i].message);
}

TEST(a_nul_in_a_field_is_refused)
{
    t_write(f.dir, "train.csv", "a,c\n1\0,0\n", 9);
    fixture_refused(&f, FL_EFORMAT, "train.csv", ", line 2, column 1: expected text, found a NUL");
}

TEST(the_test_part_follows_the_columns_and_texts_of_the_train_part)
{
    table("age,job,kind\n30,smith,b\n40,nurse,a\n");
    t_text(f.dir, "test.csv", "age,job,kind\n30,miner,b\n");
    fixture_refused(&f, FL_ERANGE, "test.csv",
                    ", line 2, column 2 (job): expected one of the values in the train part or "
                    "schema, found 'miner'");
    t_text(f.dir, "test.csv", "age,work,kind\n30,smith,b\n");
    fixture_refused(
        &f, FL_ESHAPE, "test.csv",
        ", line 1, column 2: expected the heading 'job' as in the train part or schema, "
        "found 'work'");
    t_text(f.dir, "test.csv", "30,smith,b\n");
    fixture_read(&f);
    values_are(f.got.test, (float[]){30, 0, 1}, 1, 3);
    t_text(f.dir, "test.csv", "age,kind\n30,b\n");
    fixture_refused(&f, FL_ESHAPE, "test.csv", ", line 1: expected the 3 columns");
}

TEST(another_client_with_the_schema_gets_the_same_numbers)
{
    struct fl_schema schema;

    table("age,job,kind\n30,smith,b\n40,nurse,a\n");
    fixture_read(&f);
    ck_assert_int_eq(fl_schema_copy(&schema, &f.got.schema), FL_OK);
    f.conf.schema = &schema;
    table("age,job,kind\n7,smith,b\n");
    fixture_read(&f);
    values_are(f.got.train, (float[]){7, 0, 1}, 1, 3);
    ck_assert(f.got.train->y[0] == 1 && f.got.train->classes == 2);
    fl_schema_done(&schema);
}
